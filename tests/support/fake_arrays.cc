#include "tests/support/fake_arrays.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::testing {

bool FakeArrays::State::WaitUntil(SteadyTime deadline, std::unique_lock<std::mutex>& lock,
                                  const std::function<bool()>& done) {
  if (deadline == SteadyTime::InfiniteFuture()) {
    changed.wait(lock, done);
    return true;
  }
  if (deadline == SteadyTime::InfinitePast()) return done();
  return changed.wait_until(lock, deadline.ToChrono(), done);
}

std::string FakeArrays::HandleName(const std::string& session, uint64_t handle) {
  return absl::StrCat(session, "/arrays/", handle);
}

v1::Array FakeArrays::Describe(const std::string& name, const Entry& array) {
  v1::Array result;
  result.set_name(name);
  result.set_data_type(v1::DATA_TYPE_UINT8);
  result.add_shape(static_cast<int64_t>(array.bytes.size()));
  result.set_size_bytes(static_cast<int64_t>(array.bytes.size()));
  result.set_state(!array.error.ok() ? v1::Array::STATE_FAILED
                   : array.ready     ? v1::Array::STATE_READY
                                     : v1::Array::STATE_PENDING);
  return result;
}

v1::InlineArray FakeArrays::Inline(const std::string& bytes) {
  v1::InlineArray result;
  result.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  result.mutable_spec()->add_shape(static_cast<int64_t>(bytes.size()));
  result.set_data(bytes);
  return result;
}

absl::Status FakeArrays::NotThere(const std::string& name) {
  return NotFound(v1::ERROR_REASON_ARRAY_NOT_FOUND, "array", name);
}

using Bytes = std::shared_ptr<std::string>;

class FakeSink : public engine::ByteSink {
 public:
  explicit FakeSink(Bytes bytes) : bytes_(std::move(bytes)) {}
  absl::Status Write(std::string_view bytes) override {
    bytes_->append(bytes);
    return absl::OkStatus();
  }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  const Bytes bytes_;
};

// Stores the bytes under the name once they are complete.
class FakeAccess : public engine::WriteAccess {
 public:
  FakeAccess(std::shared_ptr<FakeArrays::State> state, std::string name, Bytes bytes)
      : state_(std::move(state)), name_(std::move(name)), bytes_(std::move(bytes)) {}
  ~FakeAccess() override {
    std::lock_guard lock(state_->mutex);
    --state_->uploads;
  }
  absl::StatusOr<v1::Array> Complete() override {
    std::lock_guard lock(state_->mutex);
    state_->arrays[name_] = FakeArrays::Entry{*bytes_};
    state_->changed.notify_all();
    return FakeArrays::Describe(name_, state_->arrays[name_]);
  }

 private:
  const std::shared_ptr<FakeArrays::State> state_;
  const std::string name_;
  const Bytes bytes_;
};

// An array as it was when the download or the fetch was accepted.
class FakeSource : public engine::ByteSource {
 public:
  FakeSource(std::shared_ptr<FakeArrays::State> state, FakeArrays::Entry array)
      : state_(std::move(state)),
        generation_(state_->generation),
        array_(std::move(array)),
        bytes_(std::make_shared<std::string>(array_.bytes)),
        info_(Contiguous(DType::kUInt8, {static_cast<int64_t>(bytes_->size())})) {}

  const ArrayInfo& info() const override { return info_; }
  absl::Status Await(SteadyTime deadline) override {
    std::unique_lock lock(state_->mutex);
    auto ended = [&] { return array_.ready || state_->generation != generation_; };
    if (!state_->WaitUntil(deadline, lock, ended)) return absl::DeadlineExceededError("");
    offset_ = 0;
    return array_.error;
  }
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override {
    const std::string_view next = std::string_view(*bytes_).substr(offset_, max_bytes);
    offset_ += next.size();
    ++state_->leases;
    std::shared_ptr<const void> lease(
        bytes_.get(), [state = state_, bytes = bytes_](const void*) { --state->leases; });
    return Chunk{next, std::move(lease)};
  }

 private:
  const std::shared_ptr<FakeArrays::State> state_;
  const int64_t generation_;
  const FakeArrays::Entry array_;
  const Bytes bytes_;
  const ArrayInfo info_;
  size_t offset_ = 0;
};

FakeArrays::FakeArrays() : state_(std::make_shared<State>()) {}

void FakeArrays::FailArray(const std::string& name, absl::Status status) {
  std::lock_guard lock(state_->mutex);
  state_->arrays[name].error = std::move(status);
}

void FakeArrays::PutBytes(const std::string& name, std::string bytes) {
  std::lock_guard lock(state_->mutex);
  state_->arrays[name] = Entry{std::move(bytes)};
}

std::string FakeArrays::BytesOf(const std::string& name) const {
  std::lock_guard lock(state_->mutex);
  return state_->arrays[name].bytes;
}

int FakeArrays::num_open_uploads() const {
  std::lock_guard lock(state_->mutex);
  return state_->uploads;
}

int FakeArrays::num_leases() const { return state_->leases; }

absl::StatusOr<v1::Array> FakeArrays::Create(const TenantId& tenant,
                                             const v1::CreateArrayRequest& request) {
  std::lock_guard lock(state_->mutex);
  std::string name = absl::StrCat(request.parent(), "/arrays/", request.array_id());
  state_->arrays[name] =
      Entry{std::string(request.spec().shape_size() > 0 ? request.spec().shape(0) : 1, '\0')};
  return Describe(name, state_->arrays[name]);
}

absl::StatusOr<v1::Array> FakeArrays::Get(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  auto it = state_->arrays.find(name);
  if (it == state_->arrays.end()) return NotThere(name);
  return Describe(name, it->second);
}

absl::StatusOr<v1::ListArraysResponse> FakeArrays::List(const TenantId& tenant,
                                                        const v1::ListArraysRequest& request) {
  std::lock_guard lock(state_->mutex);
  v1::ListArraysResponse response;
  for (const auto& [name, array] : state_->arrays) *response.add_arrays() = Describe(name, array);
  return response;
}

absl::Status FakeArrays::Delete(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  return state_->arrays.erase(name) > 0 ? absl::OkStatus() : NotThere(name);
}

absl::StatusOr<std::unique_ptr<engine::Upload>> FakeArrays::BeginUpload(
    const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) {
  if (header.spec().shape_size() != 1) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "spec.shape", "must have one axis here");
  }
  std::lock_guard lock(state_->mutex);
  ++state_->uploads;
  auto bytes = std::make_shared<std::string>();
  return std::make_unique<engine::Upload>(
      header.spec().shape(0),
      std::make_unique<FakeAccess>(
          state_, absl::StrCat(header.parent(), "/arrays/", header.array_id()), bytes),
      std::make_unique<FakeSink>(bytes));
}

absl::StatusOr<std::unique_ptr<engine::Download>> FakeArrays::BeginDownload(
    const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) {
  std::unique_lock lock(state_->mutex);
  auto it = state_->arrays.find(request.name());
  if (it == state_->arrays.end()) return NotThere(request.name());
  if (!state_->WaitUntil(deadline, lock, [&] { return it->second.ready; }))
    return absl::DeadlineExceededError("");
  if (!it->second.error.ok()) return it->second.error;
  auto download = std::make_unique<engine::Download>(
      it->second.bytes.size(), std::make_unique<FakeSource>(state_, it->second));
  download->set_array(Describe(request.name(), it->second));
  return download;
}

absl::StatusOr<std::unique_ptr<engine::Download>> FakeArrays::BeginFetch(const TenantId& tenant,
                                                                         const std::string& session,
                                                                         uint64_t handle) {
  std::unique_lock lock(state_->mutex);
  std::string name = HandleName(session, handle);
  auto it = state_->arrays.find(name);
  if (it == state_->arrays.end()) return NotThere(name);
  return std::make_unique<engine::Download>(it->second.bytes.size(),
                                            std::make_unique<FakeSource>(state_, it->second));
}

}  // namespace stride::testing
