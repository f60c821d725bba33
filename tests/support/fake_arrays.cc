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

class FakeUpload : public scheduler::Upload {
 public:
  FakeUpload(std::shared_ptr<FakeArrays::State> state, std::string name, int64_t size)
      : state_(std::move(state)), name_(std::move(name)), size_(size) {}
  ~FakeUpload() override {
    std::lock_guard lock(state_->mutex);
    --state_->uploads;
  }
  int64_t remaining() const override { return size_ - static_cast<int64_t>(bytes_.size()); }
  absl::Status Write(std::string_view bytes) override {
    if (static_cast<int64_t>(bytes.size()) > remaining()) {
      return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, "data", "more bytes than declared");
    }
    bytes_.append(bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<v1::Array> Finish() override {
    if (remaining() > 0)
      return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, "data", "fewer bytes than declared");
    std::lock_guard lock(state_->mutex);
    state_->arrays[name_] = FakeArrays::Entry{bytes_};
    state_->changed.notify_all();
    return FakeArrays::Describe(name_, state_->arrays[name_]);
  }

 private:
  std::shared_ptr<FakeArrays::State> state_;
  std::string name_;
  int64_t size_;
  std::string bytes_;
};

class FakeDownload : public scheduler::Download {
 public:
  FakeDownload(std::shared_ptr<FakeArrays::State> state, v1::Array array, std::string bytes)
      : state_(std::move(state)),
        array_(std::move(array)),
        bytes_(std::make_shared<std::string>(std::move(bytes))) {}
  const v1::Array& array() const override { return array_; }
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override {
    std::string_view left = std::string_view(*bytes_).substr(offset_);
    if (left.empty()) return Chunk{};
    left = left.substr(0, max_bytes);
    offset_ += left.size();
    ++state_->leases;
    std::shared_ptr<const void> lease(
        bytes_.get(), [state = state_, bytes = bytes_](const void*) { --state->leases; });
    return Chunk{left, std::move(lease)};
  }

 private:
  std::shared_ptr<FakeArrays::State> state_;
  v1::Array array_;
  std::shared_ptr<std::string> bytes_;
  size_t offset_ = 0;
};

class FakeFetch : public scheduler::InlineFetch {
 public:
  FakeFetch(std::shared_ptr<FakeArrays::State> state, FakeArrays::Entry array, int64_t generation)
      : state_(std::move(state)), array_(std::move(array)), generation_(generation) {}

  absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline) override {
    std::unique_lock lock(state_->mutex);
    auto ended = [&] { return array_.ready || state_->generation != generation_; };
    if (!state_->WaitUntil(deadline, lock, ended)) return absl::DeadlineExceededError("");
    if (!array_.error.ok()) return array_.error;
    return FakeArrays::Inline(array_.bytes);
  }

 private:
  std::shared_ptr<FakeArrays::State> state_;
  const FakeArrays::Entry array_;  // as it was when the fetch was taken
  const int64_t generation_;
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

absl::StatusOr<std::unique_ptr<scheduler::Upload>> FakeArrays::BeginUpload(
    const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) {
  if (header.spec().shape_size() != 1) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "spec.shape", "must have one axis here");
  }
  std::lock_guard lock(state_->mutex);
  ++state_->uploads;
  return std::make_unique<FakeUpload>(
      state_, absl::StrCat(header.parent(), "/arrays/", header.array_id()), header.spec().shape(0));
}

absl::StatusOr<std::unique_ptr<scheduler::Download>> FakeArrays::BeginDownload(
    const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) {
  std::unique_lock lock(state_->mutex);
  auto it = state_->arrays.find(request.name());
  if (it == state_->arrays.end()) return NotThere(request.name());
  if (!state_->WaitUntil(deadline, lock, [&] { return it->second.ready; }))
    return absl::DeadlineExceededError("");
  if (!it->second.error.ok()) return it->second.error;
  return std::make_unique<FakeDownload>(state_, Describe(request.name(), it->second),
                                        it->second.bytes);
}

absl::StatusOr<std::unique_ptr<scheduler::InlineFetch>> FakeArrays::BeginFetch(
    const TenantId& tenant, const std::string& session, uint64_t handle) {
  std::unique_lock lock(state_->mutex);
  std::string name = HandleName(session, handle);
  auto it = state_->arrays.find(name);
  if (it == state_->arrays.end()) return NotThere(name);
  return std::make_unique<FakeFetch>(state_, it->second, state_->generation);
}

}  // namespace stride::testing
