#include "server/scheduler/engine.h"

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/crash_point.h"
#include "server/base/error.h"
#include "server/base/random_id.h"
#include "server/base/surroundings.h"
#include "server/scheduler/arrays.h"
#include "server/scheduler/core.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/exports.h"
#include "server/scheduler/functions.h"
#include "server/scheduler/jobs.h"
#include "server/scheduler/modules.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/programs.h"
#include "server/scheduler/recovery.h"
#include "server/scheduler/regions.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/session_end.h"
#include "server/session/resource_name.h"

namespace stride::scheduler {
namespace {

class TaskTicket : public Ticket {
 public:
  TaskTicket(Core* core, Scheduler* scheduler, Arrays* arrays, TenantId tenant,
             Operations::Accepted accepted)
      : core_(core),
        scheduler_(scheduler),
        arrays_(arrays),
        tenant_(std::move(tenant)),
        accepted_(std::move(accepted)) {}

  absl::Status Wait(SteadyTime deadline) override {
    absl::Status first;
    for (const auto& task : Awaited()) {
      if (!Await(task->finished, deadline)) {
        return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                         "the deadline passed before the operation ended");
      }
      if (first.ok()) first = task->result;
    }
    return first;
  }
  bool done() const override {
    for (const auto& task : Awaited()) {
      if (!task->finished.HasBeenNotified()) return false;
    }
    return true;
  }
  void Cancel() override {
    if (accepted_.task == nullptr) return;
    Locked lock(*core_);
    for (const auto& helper : accepted_.helpers) scheduler_->Cancel(helper);
    scheduler_->Cancel(accepted_.task);
  }
  void OnDone(Done callback) override {
    Locked lock(*core_, tenant_);
    const bool one = !accepted_.waits_for_helpers || accepted_.helpers.empty();
    if (one && accepted_.task != nullptr && accepted_.task->state != TaskState::kDone) {
      accepted_.task->on_done.push_back(std::move(callback));
      return;
    }
    // Called when the last of them has ended; the count is only touched in sections.
    struct Last {
      Core* core;
      TenantId tenant;
      std::vector<std::shared_ptr<Task>> tasks;
      Done callback;
      int left = 0;
    };
    auto last = std::make_shared<Last>(Last{core_, tenant_, Awaited(), std::move(callback)});
    auto tell = [last] { last->callback(FirstError(last->tasks)); };
    for (const auto& task : last->tasks) {
      if (task->state == TaskState::kDone) continue;
      ++last->left;
      task->on_done.push_back([last, tell](const absl::Status&) {
        {
          Locked lock(*last->core, last->tenant);
          if (--last->left > 0) return;
        }
        tell();
      });
    }
    if (last->left == 0) core_->Defer(tell);
  }
  void Describe(absl::FunctionRef<v1::Array*()> add) const override {
    Locked lock(*core_, tenant_);
    for (const auto& array : accepted_.outputs) scheduler::Describe(*core_, *array, add());
  }
  bool NotePending(session::PendingArrays* outputs) const override {
    Locked lock(*core_, tenant_);
    for (const auto& array : accepted_.outputs) {
      if (!session::IsPending(*array)) return false;
    }
    for (const auto& array : accepted_.outputs) outputs->push_back(session::Note(*array));
    return true;
  }
  v1::Timeline timeline() const override {
    if (accepted_.task == nullptr) return {};
    // What has ended changes no more.
    if (accepted_.task->finished.HasBeenNotified())
      return DescribeTimeline(*core_, *accepted_.task);
    Locked lock(*core_, tenant_);
    return DescribeTimeline(*core_, *accepted_.task);
  }
  int64_t OutputBytes(int output) const override {
    if (output >= static_cast<int>(accepted_.outputs.size())) return 0;
    return accepted_.outputs[output]->info->size_bytes();
  }
  Outcome TakeOutcome(const std::vector<bool>& wanted) override {
    Outcome out;
    Locked lock(*core_, tenant_);
    for (size_t i = 0; i < accepted_.outputs.size(); ++i) {
      const session::Array& array = *accepted_.outputs[i];
      out.arrays.push_back(scheduler::Describe(*core_, array));
      out.values.emplace_back();
      if (i < wanted.size() && wanted[i]) out.values.back() = arrays_->ReadAtOnce(tenant_, array);
    }
    if (accepted_.task != nullptr) out.timeline = DescribeTimeline(*core_, *accepted_.task);
    if (accepted_.task != nullptr && accepted_.task->printed != nullptr)
      out.printed = *std::exchange(accepted_.task->printed, nullptr);
    return out;
  }
  absl::StatusOr<v1::InlineArray> ReadInline(int output, SteadyTime deadline) override {
    return arrays_->ReadInline(tenant_, accepted_.outputs[output], deadline);
  }

 private:
  // Of tasks that have ended, in the order of the list.
  static absl::Status FirstError(const std::vector<std::shared_ptr<Task>>& tasks) {
    for (const auto& task : tasks) {
      if (!task->result.ok()) return task->result;
    }
    return absl::OkStatus();
  }
  // The tasks with whose end the operation ends, in order.
  std::vector<std::shared_ptr<Task>> Awaited() const {
    std::vector<std::shared_ptr<Task>> tasks;
    if (accepted_.waits_for_helpers) tasks = accepted_.helpers;
    if (accepted_.task != nullptr) tasks.push_back(accepted_.task);
    return tasks;
  }

  Core* const core_;
  Scheduler* const scheduler_;
  Arrays* const arrays_;
  const TenantId tenant_;
  const Operations::Accepted accepted_;
};

class OneSection final : public Engine::Together {
 public:
  OneSection(Core* core, Scheduler* scheduler, const TenantId& tenant)
      : lock_(*core, tenant), scheduler_(*scheduler) {
    lock_.BeginTogether();
  }
  ~OneSection() override { scheduler_.SendHeld(); }

 private:
  Locked lock_;
  OneMoment moment_;
  Scheduler& scheduler_;
};

class EngineImpl : public Engine {
 public:
  EngineImpl(EngineOptions options, broker::Broker* broker, keeper::Keeper* keeper,
             std::vector<NamedFd> kept, durable::DurableStore* store)
      : core_(options, broker),
        scheduler_(&core_),
        operations_(&core_, &scheduler_, FindModule(), &functions_, &programs_),
        regions_(&core_),
        exports_(&core_, &scheduler_),
        arrays_(&core_, &scheduler_, &operations_, &regions_),
        modules_(&core_, &scheduler_),
        functions_(&core_),
        programs_(&core_, &functions_, FindModule()),
        jobs_(&core_, &scheduler_, &operations_) {
    core_.accounts->room().Set([this](const TenantId& tenant) {
      core_.executor.Run([this, tenant] { jobs_.MakeRoom(tenant); });
    });
    operations_.SetReaders(
        [this](const TenantId& tenant, const std::shared_ptr<session::Array>& array) {
          return arrays_.ReadForBody(tenant, array);
        },
        [this](const TenantId& tenant, const session::Array& array) {
          return arrays_.ReadAtOnce(tenant, array);
        });
    core_.catalogue.add_observer(&core_.recorder);
    core_.catalogue.add_observer(&programs_);
    core_.catalogue.add_observer(&regions_);
    if (store != nullptr) durability_ = std::make_unique<Durability>(&core_, &scheduler_, store);
    if (durability_ != nullptr) {
      core_.catalogue.add_observer(durability_.get());
      core_.durability = durability_.get();
    }
    bool recovered = false;
    if (keeper != nullptr && keeper->keeps()) {
      recovered = Recovery({&core_, &scheduler_, &operations_, &arrays_, &modules_, &functions_,
                            &programs_, &jobs_})
                      .Run(keeper, std::move(kept));
    }
    if (durability_ != nullptr) BeginDurability(recovered);
    ScheduleHousekeeping();
    scheduler_.MeasureWorkers();
    Locked lock(core_);
    scheduler_.health().Start();
  }
  ~EngineImpl() override {
    core_.accounts->room().Set(nullptr);
    scheduler_.health().Stop();
    if (durability_ != nullptr) durability_->Stop();
    {
      Locked lock(core_);
      scheduler_.BeginEnd();
    }
    core_.Stop();
    // In no section: buffers that go now are no news for a successor, which still has them.
    core_.durability = nullptr;
    scheduler_.DropUnfinished();
  }

  absl::StatusOr<v1::Session> CreateSession(const TenantId& tenant,
                                            const v1::CreateSessionRequest& request) override {
    std::string id = request.session_id().empty() ? RandomId(26) : request.session_id();
    if (!session::IsSessionId(id)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "session_id",
                          "must match [a-z0-9][a-z0-9-]{0,62}");
    }
    absl::Duration ttl = core_.options.default_session_ttl;
    if (request.has_ttl()) {
      ttl = absl::Seconds(request.ttl().seconds()) + absl::Nanoseconds(request.ttl().nanos());
      if (ttl <= absl::ZeroDuration() || ttl > core_.options.max_session_ttl) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "ttl",
                            absl::StrCat("more than 0 and at most ",
                                         absl::FormatDuration(core_.options.max_session_ttl)));
      }
    }
    // A job has a session too, and a quota of its own.
    int64_t limit = *core_.accounts->QuotaOf(tenant).sessions + core_.accounts->live_jobs(tenant);
    Locked lock(core_);
    if (absl::Status admitted = AdmitSession(); !admitted.ok()) return admitted;
    auto session = core_.catalogue.CreateSession(
        tenant, id, ttl, core_.Now(), static_cast<int>(std::min<int64_t>(limit, INT_MAX)));
    if (!session.ok()) return session.status();
    return Describe(**session);
  }
  absl::StatusOr<v1::Session> GetSession(const TenantId& tenant, const std::string& name) override {
    auto id = session::ParseSessionName(name, "name");
    if (!id.ok()) return id.status();
    Locked lock(core_, tenant);
    auto session = core_.catalogue.FindSession(tenant, *id, core_.Now());
    if (!session.ok()) return session.status();
    return Describe(**session);
  }
  absl::StatusOr<v1::Session> RenewSession(const TenantId& tenant,
                                           const std::string& name) override {
    return GetSession(tenant, name);
  }
  absl::Status DeleteSession(const TenantId& tenant, const std::string& name) override {
    return EndSession(&core_, &scheduler_, tenant, name);
  }
  absl::StatusOr<v1::ReadPrintedResponse> ReadPrinted(const TenantId& tenant,
                                                      const std::string& name) override {
    auto id = session::ParseSessionName(name, "name");
    if (!id.ok()) return id.status();
    Locked lock(core_, tenant);
    auto session = core_.catalogue.FindSession(tenant, *id, core_.Now());
    if (!session.ok()) return session.status();
    session::PrintedOutput::Piece piece = (*session)->printed.Take(kMaxPrintedBytes);
    v1::ReadPrintedResponse response;
    response.set_text(std::move(piece.printed.text));
    response.set_dropped_lines(piece.printed.dropped_lines);
    response.set_more(piece.more);
    return response;
  }

  absl::StatusOr<v1::Array> CreateArray(const TenantId& tenant,
                                        const v1::CreateArrayRequest& request) override {
    return arrays_.Create(tenant, request);
  }
  absl::StatusOr<v1::Array> GetArray(const TenantId& tenant, const std::string& name) override {
    return arrays_.Get(tenant, name);
  }
  absl::StatusOr<v1::ListArraysResponse> ListArrays(const TenantId& tenant,
                                                    const v1::ListArraysRequest& request) override {
    return arrays_.List(tenant, request);
  }
  absl::Status DeleteArray(const TenantId& tenant, const std::string& name) override {
    return arrays_.Delete(tenant, name);
  }
  absl::StatusOr<std::unique_ptr<Upload>> BeginUpload(const TenantId& tenant,
                                                      const v1::PutArrayRequest::Header& header,
                                                      SteadyTime deadline) override {
    return arrays_.BeginUpload(tenant, header, deadline);
  }
  absl::StatusOr<std::unique_ptr<Download>> BeginDownload(const TenantId& tenant,
                                                          const v1::FetchArrayRequest& request,
                                                          SteadyTime deadline) override {
    return arrays_.BeginDownload(tenant, request, deadline);
  }

  absl::StatusOr<v1::CreateRegionResponse> CreateRegion(
      const TenantId& tenant, const v1::CreateRegionRequest& request) override {
    return regions_.Create(tenant, request);
  }
  absl::Status DeleteRegion(const TenantId& tenant, const std::string& name) override {
    return regions_.Delete(tenant, name);
  }
  absl::StatusOr<RedeemedRegion> RedeemRegion(std::string_view ticket) override {
    auto region = regions_.Redeem(ticket);
    if (absl::IsNotFound(region.status())) return exports_.Redeem(ticket);
    if (!region.ok()) return region.status();
    return RedeemedRegion{*region, (*region)->fd(), (*region)->name()};
  }
  absl::StatusOr<v1::MapArrayResponse> MapArray(const TenantId& tenant,
                                                const v1::MapArrayRequest& request,
                                                SteadyTime deadline) override {
    return exports_.Map(tenant, request, deadline);
  }
  void HoldRegion(const std::string& name) override { regions_.Hold(name); }
  void LetGoOfRegion(const std::string& name, std::shared_ptr<const void> connection) override {
    if (!Exports::IsName(name)) return regions_.LetGo(name);
    exports_.LetGo(name, std::move(connection));
  }
  int64_t region_bytes() override { return regions_.bytes(); }

  std::unique_ptr<Together> BeginTogether(const TenantId& tenant) override {
    return std::make_unique<OneSection>(&core_, &scheduler_, tenant);
  }
  absl::StatusOr<std::shared_ptr<Ticket>> Submit(const TenantId& tenant, const std::string& session,
                                                 const ops::OperationView& operation,
                                                 SteadyTime deadline) override {
    auto accepted = operations_.Submit(tenant, session, operation, deadline);
    if (!accepted.ok()) return accepted.status();
    return MakePooled<TaskTicket>(&core_, &scheduler_, &arrays_, tenant, *std::move(accepted));
  }
  void Refuse(const TenantId& tenant, const std::string& session,
              const ops::OperationView& operation, const absl::Status& status) override {
    operations_.Refuse(tenant, session, operation, status);
  }
  absl::Status Release(const TenantId& tenant, const std::string& session,
                       const v1::Release& release) override {
    Locked lock(core_, tenant);
    auto found = core_.catalogue.FindSessionNamed(tenant, session, "session", core_.Now());
    if (!found.ok()) return found.status();
    for (uint64_t handle : release.handles()) core_.catalogue.ReleaseHandle(**found, handle);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<InlineFetch>> BeginFetch(const TenantId& tenant,
                                                          const std::string& session,
                                                          uint64_t handle) override {
    auto id = session::ParseSessionName(session, "session");
    if (!id.ok()) return id.status();
    return arrays_.BeginFetch(tenant, {.session = *id, .handle = handle});
  }

  absl::StatusOr<v1::Job> CreateJob(const TenantId& tenant,
                                    const v1::CreateJobRequest& request) override {
    return jobs_.Create(tenant, request);
  }
  absl::StatusOr<v1::Job> GetJob(const TenantId& tenant, const std::string& name) override {
    return jobs_.Get(tenant, name);
  }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const TenantId& tenant,
                                                const v1::ListJobsRequest& request) override {
    return jobs_.List(tenant, request);
  }
  absl::StatusOr<v1::Job> CancelJob(const TenantId& tenant, const std::string& name) override {
    return jobs_.Cancel(tenant, name);
  }
  absl::Status DeleteJob(const TenantId& tenant, const std::string& name) override {
    return jobs_.Delete(tenant, name);
  }
  absl::StatusOr<std::vector<v1::WatchJobResponse>> NextJobEvents(const TenantId& tenant,
                                                                  const std::string& name,
                                                                  uint64_t after_sequence,
                                                                  SteadyTime deadline) override {
    return jobs_.NextEvents(tenant, name, after_sequence, deadline);
  }

  absl::StatusOr<v1::Module> CreateModule(const TenantId& tenant,
                                          const v1::CreateModuleRequest& request,
                                          SteadyTime deadline) override {
    return modules_.Create(tenant, request, deadline);
  }
  absl::StatusOr<v1::Module> GetModule(const TenantId& tenant, const std::string& name) override {
    return modules_.Get(tenant, name);
  }
  absl::StatusOr<v1::ListModulesResponse> ListModules(
      const TenantId& tenant, const v1::ListModulesRequest& request) override {
    return modules_.List(tenant, request);
  }
  absl::Status DeleteModule(const TenantId& tenant, const std::string& name) override {
    return modules_.Delete(tenant, name);
  }

  absl::StatusOr<v1::Function> CreateFunction(const TenantId& tenant,
                                              const v1::CreateFunctionRequest& request,
                                              SteadyTime deadline) override {
    return functions_.Create(tenant, request, deadline);
  }
  absl::StatusOr<v1::Function> GetFunction(const TenantId& tenant,
                                           const std::string& name) override {
    return functions_.Get(tenant, name);
  }
  absl::StatusOr<v1::ListFunctionsResponse> ListFunctions(
      const TenantId& tenant, const v1::ListFunctionsRequest& request) override {
    return functions_.List(tenant, request);
  }
  absl::Status DeleteFunction(const TenantId& tenant, const std::string& name) override {
    return functions_.Delete(tenant, name);
  }

  absl::StatusOr<v1::CreateProgramResponse> CreateProgram(
      const TenantId& tenant, const v1::CreateProgramRequest& request) override {
    return programs_.Create(tenant, request);
  }
  absl::StatusOr<v1::Program> GetProgram(const TenantId& tenant, const std::string& name) override {
    return programs_.Get(tenant, name);
  }
  absl::StatusOr<v1::ListProgramsResponse> ListPrograms(
      const TenantId& tenant, const v1::ListProgramsRequest& request) override {
    return programs_.List(tenant, request);
  }
  absl::Status DeleteProgram(const TenantId& tenant, const std::string& name) override {
    return programs_.Delete(tenant, name);
  }

  session::TenantAccounts& accounts() override { return *core_.accounts; }
  v1::Usage GetUsage(const TenantId& tenant) override;

  std::vector<v1::Device> ListDevices() override;
  std::vector<v1::DeviceSample> SampleDevices() override;
  SpillSample SampleSpill() override {
    Locked lock(core_);
    return scheduler_.SampleSpill();
  }
  void AwaitHealth(SteadyTime deadline) override;
  void DeviceBroke(const std::string& device, const std::string& why) override;
  bool Responds(absl::Duration patience) override;
  bool Drain(SteadyTime deadline) override;
  void StopRecording() override {
    if (durability_ != nullptr) durability_->Stop();
    Locked lock(core_);
    core_.recorder.Stop();
  }

  int MostWorkers() override {
    Locked lock(core_);
    return scheduler_.most_workers();
  }

 private:
  absl::Status AdmitSession();
  void BeginDurability(bool recovered);
  void ScheduleHousekeeping();

  // The code of modules, for those made before `modules_`.
  Programs::FindModule FindModule() {
    return [this](const TenantId& tenant, const std::string& name) {
      return modules_.Find(tenant, name);
    };
  }

  Core core_;
  Scheduler scheduler_;
  Operations operations_;
  Regions regions_;
  Exports exports_;
  Arrays arrays_;
  Modules modules_;
  Functions functions_;
  Programs programs_;
  Jobs jobs_;
  std::unique_ptr<Durability> durability_;  // null: nothing is kept on disk
};

// A session's arrays and its worker take descriptors. Those of idle workers come free first, for
// those who come after.
absl::Status EngineImpl::AdmitSession() {
  const auto& count = core_.options.free_descriptors;
  if (!count) return absl::OkStatus();
  const int64_t free = count();
  if (free > 2 * core_.options.descriptor_reserve) return absl::OkStatus();
  scheduler_.GiveDescriptors();
  if (free > core_.options.descriptor_reserve) return absl::OkStatus();
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUEUE_FULL,
                  "the service has no file descriptors left for another session; end sessions, or "
                  "raise its limit (see `stride doctor`)",
                  absl::Seconds(1), {{"resource", "file descriptors"}});
}

// A journal is newer than what is on disk; without one the disk is all there is.
void EngineImpl::BeginDurability(bool recovered) {
  std::vector<durable::JobRow> jobs;
  {
    Locked lock(core_);
    if (recovered) {
      durability_->Reconcile();
    } else {
      core_.recorder.ReadingDisk();
      jobs = durability_->RestoreArrays();
      for (const auto& [id, row] : durability_->definitions()) {
        if (row.kind == durable::DefinitionRow::kFunction)
          functions_.RestoreFromDisk(id, row.record);
        if (row.kind == durable::DefinitionRow::kProgram) programs_.RestoreFromDisk(id, row.record);
      }
    }
  }
  STRIDE_CRASH_POINT("durable.arrays_restored");
  for (const durable::JobRow& job : jobs) jobs_.RestoreFromDisk(job);
  STRIDE_CRASH_POINT("durable.jobs_restored");
  {
    Locked lock(core_);
    core_.recorder.DiskRead();
  }
  durability_->Start();
}

std::vector<v1::Device> EngineImpl::ListDevices() {
  std::vector<v1::Device> out;
  Locked lock(core_);
  for (const auto& description : core_.broker->devices()) {
    const auto index = static_cast<int>(out.size());
    const DeviceHealth& health = scheduler_.health().of(index);
    v1::Device& device = out.emplace_back();
    device.set_name(absl::StrCat("devices/", description.id()));
    device.set_kind(description.kind());
    device.set_model(description.model());
    device.set_index(description.index());
    const bool serves = health.serving() && health.known();
    device.set_state(serves             ? v1::Device::STATE_SERVING
                     : health.serving() ? v1::Device::STATE_STARTING
                                        : v1::Device::STATE_NOT_SERVING);
    if (!serves) {
      device.set_state_reason(health.reason().empty() ? "the daemon has just started and tries it"
                                                      : health.reason());
    }
    device.set_memory_total_bytes(description.memory_bytes());
    device.set_num_compute_units(description.num_compute_units());
    device.set_target(description.target());
    device.set_pci_bus_id(description.pci_bus_id());
    device.set_driver_version(description.driver_version());
    device.set_max_workers(scheduler_.most_workers(index));
    for (const wire::Link& link : core_.broker->links()) {
      if (link.to() != description.id()) continue;
      v1::DeviceLink* out_link = device.add_links();
      out_link->set_device(absl::StrCat("devices/", link.from()));
      out_link->set_path(link.peer() ? v1::DeviceLink::PATH_PEER : v1::DeviceLink::PATH_HOST);
      out_link->set_bytes_per_second(link.bytes_per_second());
    }
  }
  return out;
}

std::vector<v1::DeviceSample> EngineImpl::SampleDevices() {
  std::vector<v1::DeviceSample> out;
  Locked lock(core_);
  for (size_t i = 0; i < core_.broker->devices().size(); ++i) {
    int device = static_cast<int>(i);
    const DeviceAccount& account = scheduler_.account(device);
    v1::DeviceSample& sample = out.emplace_back();
    sample.set_device(absl::StrCat("devices/", core_.broker->devices()[i].id()));
    SetTimestamp(core_.Now(), sample.mutable_time());
    sample.set_arena_bytes(static_cast<int64_t>(scheduler_.memory().arena_bytes(device)));
    sample.set_array_bytes(static_cast<int64_t>(scheduler_.memory().used_bytes(device)));
    sample.set_queue_depth(account.queue_depth);
    sample.set_queue_seconds(account.queue_seconds());
    sample.set_busy_seconds(account.busy_seconds);
    sample.set_jobs_succeeded(account.succeeded);
    sample.set_jobs_failed(account.failed);
    sample.set_upload_bytes(account.upload_bytes);
    sample.set_download_bytes(account.download_bytes);
    sample.set_num_workers(scheduler_.num_workers(device));
    sample.set_worker_restarts(account.worker_restarts);
  }
  return out;
}

void EngineImpl::AwaitHealth(SteadyTime deadline) {
  Locked lock(core_);
  auto known = [this] { return scheduler_.health().AllKnown(); };
  lock.Await(absl::Condition(&known), deadline);
}

void EngineImpl::DeviceBroke(const std::string& device, const std::string& why) {
  auto index = operations_.FindDevice(device);
  if (!index.ok()) return;
  Locked lock(core_);
  scheduler_.health().Broke(*index, why);
}

bool EngineImpl::Responds(absl::Duration patience) {
  auto answered = std::make_shared<absl::Notification>();
  core_.executor.Run([this, answered] {
    { Locked lock(core_); }
    answered->Notify();
  });
  return Await(*answered, core_.Now() + patience);
}

v1::Usage EngineImpl::GetUsage(const TenantId& tenant) {
  Locked lock(core_, tenant);
  scheduler_.ChargeWorkers(tenant);
  v1::Usage usage = core_.accounts->Describe(tenant);
  const identity::Quota quota = core_.accounts->QuotaOf(tenant);
  auto add = [&](const char* quota_name, int64_t used, std::optional<int64_t> limit) {
    v1::QuotaUsage* line = usage.add_quotas();
    line->set_name(quota_name);
    line->set_used(used);
    if (limit.has_value()) line->set_limit(*limit);
  };
  add("operations", scheduler_.num_unfinished(tenant), quota.operations);
  int64_t sessions = core_.catalogue.NumSessions(tenant) - core_.accounts->live_jobs(tenant);
  add("sessions", std::max<int64_t>(0, sessions), quota.sessions);
  add("region-bytes", regions_.bytes(tenant), quota.region_bytes);
  return usage;
}

bool EngineImpl::Drain(SteadyTime deadline) {
  bool ended = false;
  {
    Locked lock(core_);
    core_.draining = true;
    auto idle = [this] { return scheduler_.num_unfinished() == 0; };
    ended = lock.Await(absl::Condition(&idle), deadline);
  }
  if (durability_ != nullptr) durability_->Flush(deadline);
  return ended;
}

void EngineImpl::ScheduleHousekeeping() {
  core_.timer.At(core_.Now() + core_.options.housekeeping_interval, [this] {
    jobs_.Retire(core_.Now());
    scheduler_.MeasureWorkers();
    // One by one: it may take some time, and is nobody else's.
    ForEachBit(core_.used_stripes.load(), [this](int stripe) {
      Locked lock(core_, stripe);
      scheduler_.memory().Reclaim();
      core_.recorder.Trim(stripe);
    });
    {
      Locked lock(core_);
      for (const auto& session : core_.catalogue.CloseExpiredSessions(core_.Now())) {
        core_.executor.Run([this, session] { EndSession(&core_, &scheduler_, *session); });
      }
      core_.catalogue.TakeExpiredArrays(core_.Now());
      arrays_.EndLeases(core_.Now());
      exports_.EndExpired(core_.Now());
      scheduler_.Housekeep();
    }
    ScheduleHousekeeping();
  });
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(EngineOptions options, broker::Broker* broker,
                                       keeper::Keeper* keeper, std::vector<NamedFd> kept,
                                       durable::DurableStore* store) {
  return std::make_unique<EngineImpl>(std::move(options), broker, keeper, std::move(kept), store);
}

}  // namespace stride::scheduler
