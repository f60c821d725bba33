#include "tests/support/fake_operations.h"

#include <utility>

#include "server/base/error.h"

namespace stride::testing {

class FakeHandle : public engine::OperationHandle {
 public:
  FakeHandle(std::shared_ptr<FakeOperations::Work> work, std::vector<std::string> names,
             std::string bytes, absl::Status end)
      : work_(std::move(work)),
        names_(std::move(names)),
        bytes_(std::move(bytes)),
        end_(std::move(end)),
        held_(work_->held),
        generation_(work_->arrays->generation) {}

  absl::Status Wait(SteadyTime deadline) override {
    std::unique_lock lock(work_->arrays->mutex);
    if (!work_->arrays->WaitUntil(deadline, lock, [&] { return Ended(); }))
      return absl::DeadlineExceededError("");
    return cancelled_ ? Cancelled() : end_;
  }
  bool done() const override {
    std::lock_guard lock(work_->arrays->mutex);
    return Ended();
  }
  void Cancel(engine::SubmitBatch*) override {
    std::vector<FakeOperations::Callback> callbacks;
    {
      std::lock_guard lock(work_->arrays->mutex);
      if (Ended()) return;
      cancelled_ = true;
      ++work_->cancelled;
      work_->arrays->changed.notify_all();
      auto [first, last] = work_->callbacks.equal_range(this);
      for (auto it = first; it != last; ++it) callbacks.push_back(std::move(it->second));
      work_->callbacks.erase(first, last);
    }
    for (auto& callback : callbacks) callback.done(Cancelled());
  }
  void OnDone(Done callback, engine::SubmitBatch*) override {
    {
      std::lock_guard lock(work_->arrays->mutex);
      if (!Ended()) {
        work_->callbacks.emplace(this, FakeOperations::Callback{std::move(callback), end_});
        return;
      }
    }
    callback(cancelled_ ? Cancelled() : end_);
  }
  using OperationHandle::Describe;
  void Describe(absl::FunctionRef<v1::Array*()> add, engine::SubmitBatch*) const override {
    std::lock_guard lock(work_->arrays->mutex);
    for (const std::string& name : names_)
      *add() = FakeArrays::Describe(name, FakeArrays::Entry{bytes_, Ended(), absl::OkStatus()});
  }
  v1::Timeline timeline() const override {
    v1::Timeline timeline;
    timeline.set_device("devices/cpu:0");
    return timeline;
  }
  int64_t OutputBytes(int output) const override { return static_cast<int64_t>(bytes_.size()); }
  Outcome TakeOutcome(const std::vector<bool>& wanted) override {
    Outcome out;
    out.arrays = Describe();
    out.timeline = timeline();
    out.values.resize(out.arrays.size());
    std::lock_guard lock(work_->arrays->mutex);
    for (size_t i = 0; i < out.values.size() && i < wanted.size(); ++i) {
      if (wanted[i] && work_->reads_at_once) out.values[i] = FakeArrays::Inline(bytes_);
    }
    return out;
  }
  absl::StatusOr<v1::InlineArray> ReadInline(int output, SteadyTime deadline) override {
    return FakeArrays::Inline(bytes_);
  }

 private:
  static absl::Status Cancelled() {
    return MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED, "cancelled");
  }
  bool Ended() const { return cancelled_ || !held_ || work_->arrays->generation != generation_; }

  std::shared_ptr<FakeOperations::Work> work_;
  std::vector<std::string> names_;
  std::string bytes_;
  absl::Status end_;
  bool held_;
  int64_t generation_;
  bool cancelled_ = false;
};

FakeOperations::FakeOperations(FakeArrays* arrays) : work_(std::make_shared<Work>()) {
  work_->arrays = arrays->state_;
}

FakeOperations::~FakeOperations() = default;

void FakeOperations::Hold() {
  std::lock_guard lock(work_->arrays->mutex);
  work_->held = true;
}

void FakeOperations::LetGo() {
  std::multimap<const engine::OperationHandle*, Callback> callbacks;
  {
    std::lock_guard lock(work_->arrays->mutex);
    work_->held = false;
    ++work_->arrays->generation;
    for (auto& [name, array] : work_->arrays->arrays) array.ready = true;
    callbacks.swap(work_->callbacks);
    work_->arrays->changed.notify_all();
  }
  for (auto& [handle, callback] : callbacks) callback.done(callback.end);
}

bool FakeOperations::AwaitIdle(SteadyTime deadline) {
  std::unique_lock lock(work_->arrays->mutex);
  return work_->arrays->WaitUntil(deadline, lock, [&] { return !work_->held; });
}

void FakeOperations::SetReadsAtOnce(bool reads) {
  std::lock_guard lock(work_->arrays->mutex);
  work_->reads_at_once = reads;
}

void FakeOperations::FailNextSubmit(absl::Status status) {
  std::lock_guard lock(work_->arrays->mutex);
  work_->next_submit = std::move(status);
}

void FakeOperations::FailNextWork(absl::Status status) {
  std::lock_guard lock(work_->arrays->mutex);
  work_->next_work = std::move(status);
}

int FakeOperations::num_submitted() const {
  std::lock_guard lock(work_->arrays->mutex);
  return work_->submitted;
}

int FakeOperations::num_cancelled() const {
  std::lock_guard lock(work_->arrays->mutex);
  return work_->cancelled;
}

std::vector<std::string> FakeOperations::tenants_seen() const {
  std::lock_guard lock(work_->arrays->mutex);
  return work_->tenants;
}

absl::StatusOr<std::shared_ptr<engine::OperationHandle>> FakeOperations::Submit(
    const TenantId& tenant, const std::string& session, const ops::OperationView& operation,
    SteadyTime deadline) {
  std::lock_guard lock(work_->arrays->mutex);
  work_->tenants.push_back(tenant.value);
  if (work_->next_submit.has_value()) return *std::exchange(work_->next_submit, std::nullopt);
  std::string bytes;
  if (operation->copy().input().has_inline_array()) {
    bytes = operation->copy().input().inline_array().data();
  } else if (operation->has_copy()) {
    std::string name = FakeArrays::HandleName(session, operation->copy().input().handle());
    auto it = work_->arrays->arrays.find(name);
    if (it == work_->arrays->arrays.end()) return FakeArrays::NotThere(name);
    bytes = it->second.bytes;
  } else if (operation->creation().has_fill()) {
    bytes.resize(operation->creation().fill().spec().shape(0));
  } else {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind", "only copy and fill here");
  }
  ++work_->submitted;
  absl::Status end = std::exchange(work_->next_work, std::nullopt).value_or(absl::OkStatus());
  std::vector<std::string> names;
  for (const v1::Output& output : operation->outputs()) {
    names.push_back(output.inline_result() ? "" : FakeArrays::HandleName(session, output.handle()));
    if (!output.inline_result())
      work_->arrays->arrays[names.back()] = FakeArrays::Entry{bytes, !work_->held, end};
  }
  return std::make_shared<FakeHandle>(work_, std::move(names), std::move(bytes), std::move(end));
}

absl::Status FakeOperations::Release(const TenantId& tenant, const std::string& session,
                                     const v1::Release& release) {
  std::lock_guard lock(work_->arrays->mutex);
  for (uint64_t handle : release.handles())
    work_->arrays->arrays.erase(FakeArrays::HandleName(session, handle));
  return absl::OkStatus();
}

}  // namespace stride::testing
