#include "tests/support/fake_engine.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"

namespace stride::testing {
namespace {

struct FakeArray {
  std::string bytes;
  bool ready = true;
  absl::Status error;
};

v1::Array Describe(const std::string& name, const FakeArray& array) {
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

v1::InlineArray Inline(const std::string& bytes) {
  v1::InlineArray result;
  result.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  result.mutable_spec()->add_shape(static_cast<int64_t>(bytes.size()));
  result.set_data(bytes);
  return result;
}

std::string HandleName(const std::string& session, uint64_t handle) {
  return absl::StrCat(session, "/arrays/", handle);
}

absl::Status NoArray(const std::string& name) {
  return NotFound(v1::ERROR_REASON_ARRAY_NOT_FOUND, "array", name);
}

}  // namespace

struct FakeEngine::State {
  bool WaitUntil(SteadyTime deadline, std::unique_lock<std::mutex>& lock,
                 const std::function<bool()>& done) {
    if (deadline == SteadyTime::InfiniteFuture()) {
      changed.wait(lock, done);
      return true;
    }
    if (deadline == SteadyTime::InfinitePast()) return done();
    return changed.wait_until(lock, deadline.ToChrono(), done);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  int64_t generation = 0;  // of LetGo
  std::optional<absl::Status> next_submit;
  std::optional<absl::Status> next_work;
  struct Callback {
    scheduler::Ticket::Done done;
    absl::Status end;
  };
  std::multimap<const scheduler::Ticket*, Callback> callbacks;  // of unfinished work
  std::map<std::string, FakeArray> arrays;
  std::map<std::string, v1::Job> jobs;
  std::map<std::string, v1::Module> modules;
  std::vector<v1::Device> devices;
  std::vector<std::string> tenants;
  int submitted = 0;
  int cancelled = 0;
  int uploads = 0;
  bool draining = false;
  bool reads_at_once = true;
  std::atomic<int> leases{0};
};

class FakeTicket : public scheduler::Ticket {
 public:
  FakeTicket(std::shared_ptr<FakeEngine::State> state, std::vector<std::string> names,
             std::string bytes, absl::Status end)
      : state_(std::move(state)),
        names_(std::move(names)),
        bytes_(std::move(bytes)),
        end_(std::move(end)),
        held_(state_->held),
        generation_(state_->generation) {}

  absl::Status Wait(SteadyTime deadline) override {
    std::unique_lock lock(state_->mutex);
    if (!state_->WaitUntil(deadline, lock, [&] { return Ended(); }))
      return absl::DeadlineExceededError("");
    return cancelled_ ? Cancelled() : end_;
  }
  bool done() const override {
    std::lock_guard lock(state_->mutex);
    return Ended();
  }
  void Cancel() override {
    std::vector<FakeEngine::State::Callback> callbacks;
    {
      std::lock_guard lock(state_->mutex);
      if (Ended()) return;
      cancelled_ = true;
      ++state_->cancelled;
      state_->changed.notify_all();
      auto [first, last] = state_->callbacks.equal_range(this);
      for (auto it = first; it != last; ++it) callbacks.push_back(std::move(it->second));
      state_->callbacks.erase(first, last);
    }
    for (auto& callback : callbacks) callback.done(Cancelled());
  }
  void OnDone(Done callback) override {
    {
      std::lock_guard lock(state_->mutex);
      if (!Ended()) {
        state_->callbacks.emplace(this, FakeEngine::State::Callback{std::move(callback), end_});
        return;
      }
    }
    callback(cancelled_ ? Cancelled() : end_);
  }
  using Ticket::Describe;
  void Describe(absl::FunctionRef<v1::Array*()> add) const override {
    std::lock_guard lock(state_->mutex);
    for (const std::string& name : names_)
      *add() = stride::testing::Describe(name, FakeArray{bytes_, Ended(), absl::OkStatus()});
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
    std::lock_guard lock(state_->mutex);
    for (size_t i = 0; i < out.values.size() && i < wanted.size(); ++i) {
      if (wanted[i] && state_->reads_at_once) out.values[i] = Inline(bytes_);
    }
    return out;
  }
  absl::StatusOr<v1::InlineArray> ReadInline(int output, SteadyTime deadline) override {
    return Inline(bytes_);
  }

 private:
  static absl::Status Cancelled() {
    return MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED, "cancelled");
  }
  bool Ended() const { return cancelled_ || !held_ || state_->generation != generation_; }

  std::shared_ptr<FakeEngine::State> state_;
  std::vector<std::string> names_;
  std::string bytes_;
  absl::Status end_;
  bool held_;
  int64_t generation_;
  bool cancelled_ = false;
};

class FakeUpload : public scheduler::Upload {
 public:
  FakeUpload(std::shared_ptr<FakeEngine::State> state, std::string name, int64_t size)
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
    state_->arrays[name_] = FakeArray{bytes_};
    state_->changed.notify_all();
    return stride::testing::Describe(name_, state_->arrays[name_]);
  }

 private:
  std::shared_ptr<FakeEngine::State> state_;
  std::string name_;
  int64_t size_;
  std::string bytes_;
};

class FakeDownload : public scheduler::Download {
 public:
  FakeDownload(std::shared_ptr<FakeEngine::State> state, v1::Array array, std::string bytes)
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
  std::shared_ptr<FakeEngine::State> state_;
  v1::Array array_;
  std::shared_ptr<std::string> bytes_;
  size_t offset_ = 0;
};

class FakeFetch : public scheduler::InlineFetch {
 public:
  FakeFetch(std::shared_ptr<FakeEngine::State> state, FakeArray array, int64_t generation)
      : state_(std::move(state)), array_(std::move(array)), generation_(generation) {}

  absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline) override {
    std::unique_lock lock(state_->mutex);
    auto ended = [&] { return array_.ready || state_->generation != generation_; };
    if (!state_->WaitUntil(deadline, lock, ended)) return absl::DeadlineExceededError("");
    if (!array_.error.ok()) return array_.error;
    return Inline(array_.bytes);
  }

 private:
  std::shared_ptr<FakeEngine::State> state_;
  const FakeArray array_;  // as it was when the fetch was taken
  const int64_t generation_;
};

FakeEngine::FakeEngine() : state_(std::make_shared<State>()) {
  for (int i = 0; i < 2; ++i) {
    v1::Device device;
    device.set_name(absl::StrCat("devices/cpu:", i));
    device.set_kind("cpu");
    device.set_index(i);
    device.set_state(v1::Device::STATE_SERVING);
    state_->devices.push_back(device);
  }
}

FakeEngine::~FakeEngine() = default;

void FakeEngine::Hold() {
  std::lock_guard lock(state_->mutex);
  state_->held = true;
}

void FakeEngine::SetReadsAtOnce(bool reads) {
  std::lock_guard lock(state_->mutex);
  state_->reads_at_once = reads;
}

void FakeEngine::LetGo() {
  std::multimap<const scheduler::Ticket*, FakeEngine::State::Callback> callbacks;
  {
    std::lock_guard lock(state_->mutex);
    state_->held = false;
    ++state_->generation;
    for (auto& [name, array] : state_->arrays) array.ready = true;
    callbacks.swap(state_->callbacks);
    state_->changed.notify_all();
  }
  for (auto& [ticket, callback] : callbacks) callback.done(callback.end);
}

void FakeEngine::FailNextSubmit(absl::Status status) {
  std::lock_guard lock(state_->mutex);
  state_->next_submit = std::move(status);
}

void FakeEngine::FailNextWork(absl::Status status) {
  std::lock_guard lock(state_->mutex);
  state_->next_work = std::move(status);
}

void FakeEngine::FailArray(const std::string& name, absl::Status status) {
  std::lock_guard lock(state_->mutex);
  state_->arrays[name].error = std::move(status);
}

void FakeEngine::SetDeviceName(int device, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  state_->devices[device].set_name(name);
}

void FakeEngine::SetDeviceState(int device, v1::Device::State state) {
  std::lock_guard lock(state_->mutex);
  state_->devices[device].set_state(state);
}

int FakeEngine::num_submitted() const {
  std::lock_guard lock(state_->mutex);
  return state_->submitted;
}

int FakeEngine::num_cancelled() const {
  std::lock_guard lock(state_->mutex);
  return state_->cancelled;
}

int FakeEngine::num_open_uploads() const {
  std::lock_guard lock(state_->mutex);
  return state_->uploads;
}

int FakeEngine::num_leases() const { return state_->leases; }

std::string FakeEngine::BytesOf(const std::string& name) const {
  std::lock_guard lock(state_->mutex);
  return state_->arrays[name].bytes;
}

void FakeEngine::PutBytes(const std::string& name, std::string bytes) {
  std::lock_guard lock(state_->mutex);
  state_->arrays[name] = FakeArray{std::move(bytes)};
}

std::vector<std::string> FakeEngine::tenants_seen() const {
  std::lock_guard lock(state_->mutex);
  return state_->tenants;
}

absl::StatusOr<v1::Session> FakeEngine::CreateSession(const TenantId& tenant,
                                                      const v1::CreateSessionRequest& request) {
  std::lock_guard lock(state_->mutex);
  state_->tenants.push_back(tenant.value);
  v1::Session session;
  session.set_name(absl::StrCat("sessions/", request.session_id()));
  return session;
}

absl::StatusOr<v1::Session> FakeEngine::GetSession(const TenantId& tenant,
                                                   const std::string& name) {
  if (name == "sessions/none") return NotFound(v1::ERROR_REASON_SESSION_NOT_FOUND, "session", name);
  if (name == "sessions/broken") return absl::InternalError("pointer 0xdeadbeef in /secret/path");
  v1::Session session;
  session.set_name(name);
  session.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 600);
  return session;
}

absl::StatusOr<v1::Session> FakeEngine::RenewSession(const TenantId& tenant,
                                                     const std::string& name) {
  return GetSession(tenant, name);
}

absl::Status FakeEngine::DeleteSession(const TenantId& tenant, const std::string& name) {
  return GetSession(tenant, name).status();
}

absl::StatusOr<v1::ReadPrintedResponse> FakeEngine::ReadPrinted(const TenantId& tenant,
                                                                const std::string& name) {
  if (auto session = GetSession(tenant, name); !session.ok()) return session.status();
  return v1::ReadPrintedResponse();
}

absl::StatusOr<v1::Array> FakeEngine::CreateArray(const TenantId& tenant,
                                                  const v1::CreateArrayRequest& request) {
  std::lock_guard lock(state_->mutex);
  std::string name = absl::StrCat(request.parent(), "/arrays/", request.array_id());
  state_->arrays[name] =
      FakeArray{std::string(request.spec().shape_size() > 0 ? request.spec().shape(0) : 1, '\0')};
  return Describe(name, state_->arrays[name]);
}

absl::StatusOr<v1::Array> FakeEngine::GetArray(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  auto it = state_->arrays.find(name);
  if (it == state_->arrays.end()) return NoArray(name);
  return Describe(name, it->second);
}

absl::StatusOr<v1::ListArraysResponse> FakeEngine::ListArrays(
    const TenantId& tenant, const v1::ListArraysRequest& request) {
  std::lock_guard lock(state_->mutex);
  v1::ListArraysResponse response;
  for (const auto& [name, array] : state_->arrays) *response.add_arrays() = Describe(name, array);
  return response;
}

absl::Status FakeEngine::DeleteArray(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  return state_->arrays.erase(name) > 0 ? absl::OkStatus() : NoArray(name);
}

absl::StatusOr<std::unique_ptr<scheduler::Upload>> FakeEngine::BeginUpload(
    const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) {
  if (header.spec().shape_size() != 1) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "spec.shape", "must have one axis here");
  }
  std::lock_guard lock(state_->mutex);
  ++state_->uploads;
  return std::make_unique<FakeUpload>(
      state_, absl::StrCat(header.parent(), "/arrays/", header.array_id()), header.spec().shape(0));
}

absl::StatusOr<std::unique_ptr<scheduler::Download>> FakeEngine::BeginDownload(
    const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) {
  std::unique_lock lock(state_->mutex);
  auto it = state_->arrays.find(request.name());
  if (it == state_->arrays.end()) return NoArray(request.name());
  if (!state_->WaitUntil(deadline, lock, [&] { return it->second.ready; }))
    return absl::DeadlineExceededError("");
  if (!it->second.error.ok()) return it->second.error;
  return std::make_unique<FakeDownload>(state_, Describe(request.name(), it->second),
                                        it->second.bytes);
}

absl::StatusOr<std::shared_ptr<scheduler::Ticket>> FakeEngine::Submit(
    const TenantId& tenant, const std::string& session, const ops::OperationView& operation,
    SteadyTime deadline) {
  std::lock_guard lock(state_->mutex);
  state_->tenants.push_back(tenant.value);
  if (state_->next_submit.has_value()) return *std::exchange(state_->next_submit, std::nullopt);
  std::string bytes;
  if (operation->copy().input().has_inline_array()) {
    bytes = operation->copy().input().inline_array().data();
  } else if (operation->has_copy()) {
    std::string name = HandleName(session, operation->copy().input().handle());
    auto it = state_->arrays.find(name);
    if (it == state_->arrays.end()) return NoArray(name);
    bytes = it->second.bytes;
  } else if (operation->creation().has_fill()) {
    bytes.resize(operation->creation().fill().spec().shape(0));
  } else {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind", "only copy and fill here");
  }
  ++state_->submitted;
  absl::Status end = std::exchange(state_->next_work, std::nullopt).value_or(absl::OkStatus());
  std::vector<std::string> names;
  for (const v1::Output& output : operation->outputs()) {
    names.push_back(output.inline_result() ? "" : HandleName(session, output.handle()));
    if (!output.inline_result())
      state_->arrays[names.back()] = FakeArray{bytes, !state_->held, end};
  }
  return std::make_shared<FakeTicket>(state_, std::move(names), std::move(bytes), std::move(end));
}

absl::Status FakeEngine::Release(const TenantId& tenant, const std::string& session,
                                 const v1::Release& release) {
  std::lock_guard lock(state_->mutex);
  for (uint64_t handle : release.handles()) state_->arrays.erase(HandleName(session, handle));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<scheduler::InlineFetch>> FakeEngine::BeginFetch(
    const TenantId& tenant, const std::string& session, uint64_t handle) {
  std::unique_lock lock(state_->mutex);
  std::string name = HandleName(session, handle);
  auto it = state_->arrays.find(name);
  if (it == state_->arrays.end()) return NoArray(name);
  return std::make_unique<FakeFetch>(state_, it->second, state_->generation);
}

absl::StatusOr<v1::Job> FakeEngine::CreateJob(const TenantId& tenant,
                                              const v1::CreateJobRequest& request) {
  std::lock_guard lock(state_->mutex);
  v1::Job job = request.job();
  job.set_name(absl::StrCat("tenants/", tenant.value, "/jobs/", request.job_id()));
  job.set_state(v1::Job::STATE_QUEUED);
  state_->jobs[job.name()] = job;
  return job;
}

absl::StatusOr<v1::Job> FakeEngine::GetJob(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  auto it = state_->jobs.find(name);
  if (it == state_->jobs.end()) return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "job", name);
  return it->second;
}

absl::StatusOr<v1::ListJobsResponse> FakeEngine::ListJobs(const TenantId& tenant,
                                                          const v1::ListJobsRequest&) {
  std::lock_guard lock(state_->mutex);
  v1::ListJobsResponse response;
  for (const auto& [name, job] : state_->jobs) *response.add_jobs() = job;
  return response;
}

absl::StatusOr<v1::Job> FakeEngine::CancelJob(const TenantId& tenant, const std::string& name) {
  auto job = GetJob(tenant, name);
  if (!job.ok()) return job;
  std::lock_guard lock(state_->mutex);
  state_->jobs[name].set_state(v1::Job::STATE_CANCELLED);
  state_->changed.notify_all();
  return state_->jobs[name];
}

absl::Status FakeEngine::DeleteJob(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  if (state_->jobs.erase(name) == 0) return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "job", name);
  return absl::OkStatus();
}

// Two events: queued (1), cancelled (2).
absl::StatusOr<std::vector<v1::WatchJobResponse>> FakeEngine::NextJobEvents(const TenantId& tenant,
                                                                            const std::string& name,
                                                                            uint64_t after_sequence,
                                                                            SteadyTime deadline) {
  auto job = GetJob(tenant, name);
  if (!job.ok()) return job.status();
  std::unique_lock lock(state_->mutex);
  std::vector<v1::WatchJobResponse> events;
  auto add = [&](uint64_t sequence, v1::Job::State state) {
    events.emplace_back();
    events.back().set_sequence(sequence);
    events.back().set_state(state);
  };
  if (after_sequence == 0) {
    add(1, v1::Job::STATE_QUEUED);
  } else if (after_sequence == 1 && state_->WaitUntil(deadline, lock, [&] {
               return state_->jobs[name].state() == v1::Job::STATE_CANCELLED;
             })) {
    add(2, v1::Job::STATE_CANCELLED);
  }
  return events;
}

absl::StatusOr<v1::Module> FakeEngine::CreateModule(const TenantId& tenant,
                                                    const v1::CreateModuleRequest& request,
                                                    SteadyTime deadline) {
  if (request.module().source() == "wrong") {
    return InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "module.source",
                        std::string(100000, '\n'));
  }
  std::lock_guard lock(state_->mutex);
  v1::Module module = request.module();
  module.set_name(absl::StrCat("tenants/", tenant.value, "/modules/", request.module_id()));
  state_->modules[module.name()] = module;
  return module;
}

absl::StatusOr<v1::Module> FakeEngine::GetModule(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  auto it = state_->modules.find(name);
  if (it == state_->modules.end())
    return NotFound(v1::ERROR_REASON_MODULE_NOT_FOUND, "module", name);
  return it->second;
}

absl::StatusOr<v1::ListModulesResponse> FakeEngine::ListModules(const TenantId& tenant,
                                                                const v1::ListModulesRequest&) {
  std::lock_guard lock(state_->mutex);
  v1::ListModulesResponse response;
  for (const auto& [name, module] : state_->modules) *response.add_modules() = module;
  return response;
}

absl::Status FakeEngine::DeleteModule(const TenantId& tenant, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  if (state_->modules.erase(name) == 0)
    return NotFound(v1::ERROR_REASON_MODULE_NOT_FOUND, "module", name);
  return absl::OkStatus();
}

std::vector<v1::Device> FakeEngine::ListDevices() {
  std::lock_guard lock(state_->mutex);
  return state_->devices;
}

std::vector<v1::DeviceSample> FakeEngine::SampleDevices() {
  std::vector<v1::DeviceSample> samples(2);
  samples[0].set_arena_bytes(1000);
  samples[1].set_queue_depth(3);
  return samples;
}

bool FakeEngine::Drain(SteadyTime deadline) {
  std::unique_lock lock(state_->mutex);
  state_->draining = true;
  return state_->WaitUntil(deadline, lock, [&] { return !state_->held; });
}

}  // namespace stride::testing
