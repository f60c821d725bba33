#include "server/scheduler/recovery.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/crash_point.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/base/steady_time.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/record_convert.h"
#include "server/scheduler/recorder.h"
#include "server/session/resource_name.h"
#include "server/store/spill_file.h"
#include "server/wire/status_page.h"

namespace stride::scheduler {

using recovery::Key;
using recovery::Kind;
using wire::AtOrBefore;

namespace {

// After this many daemons in a row died while they read the journals, the journals are to blame.
constexpr uint32_t kMaxAttempts = 10;
constexpr int kWorkerEndMs = 5000;

absl::Status DataLost() {
  return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                   "the array's content was lost when the daemon was replaced");
}

absl::Status DaemonEnded(const std::string& label, bool in_place) {
  return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                   in_place ? "the daemon ended while the operation changed this array in place; "
                              "it is not known how far it came"
                            : "the operation failed; why was lost with the daemon, and its inputs "
                              "have changed since",
                   {{"operation", label}});
}

bool WritesInPlace(const recovery::DispatchRecord& dispatch) {
  return std::any_of(dispatch.flags().begin(), dispatch.flags().end(), [](uint32_t flags) {
    return (flags & kUseWrite) != 0 && (flags & kUseFresh) == 0;
  });
}

// Whether the descriptor is meaningless without the journals.
bool BelongsToJournal(const std::string& name) {
  for (const char* prefix : {"arena-", "page-", "process-"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return recovery::Journals::IsFileName(name);
}

template <typename Record>
absl::Status ParseInto(std::string_view bytes, uint64_t id, std::map<uint64_t, Record>* records) {
  if ((*records)[id].ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::OkStatus();
  return absl::DataLossError("the journal is damaged: a record cannot be read");
}

// True when the process has ended, by this signal or before.
bool EndProcess(int pidfd) {
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  pollfd entry{pidfd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&entry, 1, kWorkerEndMs);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

bool Recovery::Run(keeper::Keeper* keeper, std::vector<NamedFd> kept) {
  keeper_ = keeper;
  for (NamedFd& entry : kept) fds_[entry.name] = std::move(entry.fd);
  auto journals = OpenJournals();
  if (!journals.ok()) {
    StartAnew(journals.status());
    return false;
  }
  EndOldWorkers();
  {
    GlobalTransaction transaction(core_);
    core_.recorder->Start(keeper_, *std::move(journals), books_.last_id);
    RestoreThings(transaction);
  }
  STRIDE_CRASH_POINT("recovery.things");
  RestoreJobs();
  {
    GlobalTransaction transaction(core_);
    for (const auto& task : resumed_) parts_.scheduler->Resume(transaction, task);
    core_.recorder->Recovered(transaction);
  }
  parts_.jobs->UpdateAll();
  STRIDE_CRASH_POINT("recovery.end");
  ForgetDescriptors();
  core_.options.log(absl::StrCat("recovered: ", sessions_.size(), " sessions, ", arrays_.size(),
                                 " arrays, ", books_.jobs.size(), " jobs, ", resumed_.size(),
                                 " operations to go on with, ", arenas_.size(), " arenas"));
  return true;
}

absl::StatusOr<std::unique_ptr<recovery::Journals>> Recovery::OpenJournals() {
  auto journals = recovery::Journals::Open(keeper_, &fds_);
  if (!journals.ok()) return journals.status();
  if ((*journals)->common().CountAttempt() > kMaxAttempts)
    return absl::DataLossError("no daemon survived the recovery from the journal");
  if (absl::Status status = Read(**journals); !status.ok()) return status;
  return journals;
}

// Begins empty journals: there are none, or they cannot be trusted.
void Recovery::StartAnew(const absl::Status& why) {
  if (!absl::IsNotFound(why))
    core_.options.log(absl::StrCat(core_.durability == nullptr
                                       ? "ALL ARRAYS AND JOBS ARE LOST: "
                                       : "ALL ARRAYS AND JOBS THAT ARE NOT ON DISK ARE LOST: ",
                                   why.message()));
  ForgetDescriptors();
  auto journals = recovery::Journals::Create(keeper_);
  if (!journals.ok()) {
    core_.options.log(
        absl::StrCat("nothing will outlive this process: ", journals.status().message()));
    return;
  }
  GlobalTransaction transaction(core_);
  core_.recorder->Start(keeper_, *std::move(journals), 0);
}

void Recovery::ForgetDescriptors() {
  for (const auto& [name, fd] : fds_) {
    bool in_use = recovery::Journals::IsFileName(name) ||
                  std::any_of(arenas_.begin(), arenas_.end(), [&](const auto& entry) {
                    return recovery::ArenaName(entry.first) == name;
                  });
    if (BelongsToJournal(name) && !(in_use && core_.recorder->on())) keeper_->Remove(name);
  }
  fds_.clear();
}

absl::Status Recovery::Read(const recovery::Journals& journals) {
  absl::Status status;
  journals.ForEach([&](uint64_t key, std::string_view bytes) {
    if (!status.ok()) return;
    uint64_t id = recovery::IdOf(key);
    switch (recovery::KindOf(key)) {
      case Kind::kSession:
        status = ParseInto(bytes, id, &books_.sessions);
        break;
      case Kind::kArray:
        status = ParseInto(bytes, id, &books_.arrays);
        break;
      case Kind::kBuffer:
        status = ParseInto(bytes, id, &books_.buffers);
        break;
      case Kind::kInlineBytes:
        books_.inline_bytes[id] = std::string(bytes);
        break;
      case Kind::kArena:
        status = ParseInto(bytes, id, &books_.arenas);
        return;  // arena ids are not from the recorder's count
      case Kind::kWorker:
        status = ParseInto(bytes, id, &books_.workers);
        break;
      case Kind::kTask:
        status = ParseInto(bytes, id, &books_.tasks);
        books_.last_task = std::max(books_.last_task, id);
        return;
      case Kind::kDispatch:
        status = ParseInto(bytes, id, &books_.dispatches);
        return;
      case Kind::kTaskResult:
        status = ParseInto(bytes, id, &books_.results);
        books_.last_task = std::max(books_.last_task, id);
        return;
      case Kind::kJob:
        status = ParseInto(bytes, id, &books_.jobs);
        // Ended tasks are not in the journals, but no later task may get the id of one.
        for (uint64_t task : books_.jobs[id].tasks())
          books_.last_task = std::max(books_.last_task, task);
        break;
      case Kind::kModule:
        status = ParseInto(bytes, id, &books_.modules);
        break;
      case Kind::kFunction:
        status = ParseInto(bytes, id, &books_.functions);
        break;
      case Kind::kProgram:
        status = ParseInto(bytes, id, &books_.programs);
        break;
      case Kind::kReplay:
        status = ParseInto(bytes, id, &books_.replays);
        break;
      case Kind::kReadingDisk:  // the disk still has all, and no client has observed a change
        status = absl::NotFoundError("");
        return;
      default:
        status = absl::DataLossError("the journal is of a later version");
    }
    books_.last_id = std::max(books_.last_id, id);
  });
  // Merges the dispatches in tasks' bodies with the others. An empty dispatch means that the task
  // was taken back.
  for (auto& [id, task] : books_.tasks) {
    if (task.has_dispatch()) books_.dispatches.try_emplace(id, task.dispatch());
    auto dispatch = books_.dispatches.find(id);
    if (dispatch != books_.dispatches.end() && dispatch->second.last_sequence() == 0)
      books_.dispatches.erase(dispatch);
  }
  return status;
}

void Recovery::EndOldWorkers() {
  for (const auto& [id, record] : books_.workers) {
    std::optional<QueueProgress>& progress = progress_[id];
    auto process = fds_.find(recovery::ProcessName(id));
    if (process != fds_.end() && !EndProcess(process->second.get())) {
      core_.options.log("a worker of the earlier daemon does not end");
    }
    auto page = fds_.find(recovery::StatusPageName(id));
    if (page == fds_.end() || !CheckMemoryFile(page->second.get(), wire::kStatusPageBytes).ok())
      continue;
    auto map = MemoryMap::Map(page->second.get(), wire::kStatusPageBytes, /*writable=*/false);
    if (!map.ok()) continue;
    const auto* status = reinterpret_cast<const wire::StatusPage*>(map->data());
    progress = QueueProgress{status->completed_sequence.load(), status->started_sequence.load(),
                             wire::UndoneIn(*status)};
  }
}

void Recovery::RestoreThings(GlobalTransaction& transaction) {
  RestoreArenas(transaction);
  RestoreBuffers();
  RestoreSessions(transaction);
  RestoreArrays(transaction);
  SpoilWhatNobodyFills();
  if (core_.durability != nullptr) core_.durability->RestoreLoads(transaction);
  for (const auto& [id, record] : books_.modules) parts_.modules->Restore(transaction, id, record);
  for (const auto& [id, record] : books_.functions)
    parts_.functions->Restore(transaction, id, record);
  for (const auto& [id, record] : books_.programs)
    parts_.programs->Restore(transaction, id, record);
  AbandonUnacceptedJobs(transaction);
  JudgeTasks();
  RestoreTasks(transaction);
  SpoilWhatIsGone();
  for (const auto& [id, record] : books_.workers)
    core_.recorder->WorkerGone(transaction, TenantId{record.tenant()}, id);
  parts_.operations->GoOnFrom(books_.last_task + 1);
  buffers_.clear();  // ends unused buffers, whose records are then erased
}

void Recovery::RestoreArenas(GlobalTransaction& transaction) {
  for (const auto& [id, record] : books_.arenas) {
    int device = core_.PlaceIndex(record.device());
    auto fd = fds_.find(recovery::ArenaName(id));
    bool there = device >= 0 && fd != fds_.end();
    MemoryMap map;
    if (there && device == core_.disk_place())
      there = store::CheckSpillFile(fd->second.get(), record.size()).ok();
    if (there && core_.Place(device).host_memory()) {
      auto mapped = CheckMemoryFile(fd->second.get(), record.size()).ok()
                        ? MemoryMap::Map(fd->second.get(), record.size(), /*writable=*/true)
                        : absl::StatusOr<MemoryMap>(DataLost());
      there = mapped.ok();
      if (there) map = *std::move(mapped);
    }
    if (!there) {
      core_.recorder->Erase(transaction, TenantId{record.tenant()}, Kind::kArena, id);
      continue;
    }
    auto arena =
        std::make_shared<store::Arena>(id, record.size(), std::move(fd->second), std::move(map));
    arena->alone = record.alone();
    arena->num_blocks = UINT64_MAX;  // the count is lost; lend.cc asks whether it is 1
    Lane& lane = parts_.scheduler->LaneFor(transaction, TenantId{record.tenant()}, device);
    parts_.scheduler->memory().Restore(transaction, lane, arena);
    arenas_[id] = arena;
    arena_device_[id] = device;
  }
}

void Recovery::RestoreBuffers() {
  for (auto& [id, record] : books_.buffers) {
    auto buffer =
        MakePooled<store::Buffer>(TenantId{record.tenant()}, record.size(), core_.reclaimer);
    buffer->record = id;
    buffer->RestoreError(StatusFrom(record.error()));
    for (const recovery::LostWriteRecord& lost : record.lost_writes())
      buffer->RestoreLostWrite({lost.session(), StatusFrom(lost.status())});
    buffer->kept = record.kept();
    buffer->loading = record.loading();
    // The saved version is of no use: without a disk store, changes are not tracked.
    if (core_.durability == nullptr) buffer->SetKept(0);
    for (const recovery::ReplicaRecord& replica : record.replicas()) {
      if (buffer->loading) break;
      auto arena = arenas_.find(replica.arena());
      if (arena == arenas_.end() || !arena->second->heap.Reserve(replica.offset(), replica.size()))
        continue;
      buffer->AddReplica(arena_device_[replica.arena()],
                         {arena->second, replica.offset(), replica.size()});
    }
    auto bytes = books_.inline_bytes.find(id);
    if (bytes != books_.inline_bytes.end())
      buffer->inline_bytes = std::make_shared<const std::string>(std::move(bytes->second));
    buffers_[id] = std::move(buffer);
  }
}

void Recovery::RestoreSessions(GlobalTransaction& transaction) {
  for (const auto& [id, record] : books_.sessions) {
    auto session = std::make_shared<session::Session>();
    session->record = id;
    session->id = record.id();
    session->tenant = TenantId{record.tenant()};
    session->create_time = TimeFrom(record.create_time(), SteadyTime());
    session->ttl = absl::Nanoseconds(record.ttl());
    // The client could not renew the session while no daemon ran.
    session->expire_time = core_.Now() + session->ttl;
    session->num_pins = record.of_job() ? 1 : 0;
    sessions_[{record.tenant(), record.id()}] = session;
    core_.catalogue.Restore(transaction, session);
  }
}

// Restores a sharded array from its parts, which are restored already.
void Recovery::RestoreShards(const recovery::ShardsRecord& record, session::Array& array) {
  auto shards = std::make_shared<session::Shards>();
  shards->axis = record.axis();
  shards->replicated = record.replicated();
  bool whole = record.parts_size() > 0 && record.parts_size() == record.devices_size();
  for (const std::string& device : record.devices()) {
    shards->devices.push_back(core_.DeviceIndex(device));
    whole = whole && shards->devices.back() >= 0;
  }
  for (uint64_t part : record.parts()) {
    auto found = array_parts_.find(part);
    whole = whole && found != array_parts_.end();
    if (whole) shards->parts.push_back(found->second);
  }
  const auto rank = static_cast<int>(array.info->shape.size());
  whole = whole && shards->axis >= 0 && (shards->replicated || shards->axis < rank);
  if (whole) {
    array.shards = std::move(shards);
  } else if (array.error.ok()) {
    array.error = DataLost();
  }
}

void Recovery::RestoreArrays(GlobalTransaction& transaction) {
  // Arrays without a name are parts of sharded ones, and are restored first.
  for (const auto& [id, record] : books_.arrays) {
    if (record.name().empty()) RestoreArray(transaction, id, record);
  }
  for (const auto& [id, record] : books_.arrays) {
    if (!record.name().empty()) RestoreArray(transaction, id, record);
  }
  for (const auto& [id, part] : array_parts_) {
    if (part.use_count() == 1)
      core_.recorder->Erase(transaction, part->tenant, Kind::kArray, id);  // part of no array
  }
  array_parts_.clear();
}

void Recovery::RestoreArray(GlobalTransaction& transaction, uint64_t id,
                            const recovery::ArrayRecord& record) {
  auto array = MakePooled<session::Array>();
  array->record = id;
  array->tenant = TenantId{record.tenant()};
  if (core_.durability != nullptr) array->durable = record.durable();
  array->error = StatusFrom(record.error());
  array->create_time = TimeFrom(record.create_time(), SteadyTime());
  array->expire_time = TimeFrom(record.expire_time(), SteadyTime::InfiniteFuture());
  auto buffer = buffers_.find(record.buffer());
  if (buffer != buffers_.end()) {
    array->buffer = buffer->second;
    array->tenant = array->buffer->tenant;  // records of parts from older daemons have no tenant
  }
  if (auto info = InfoFrom(record.info()); info.ok()) {
    array->info = *std::move(info);
  } else {
    array->buffer = nullptr;
  }
  if (record.has_shards()) RestoreShards(record.shards(), *array);
  const bool there = array->buffer != nullptr || array->shards != nullptr;
  if (!there && array->error.ok()) array->error = DataLost();
  if (record.name().empty()) {
    array_parts_[id] = array;
    RestoreUpload(transaction, record, array);
    return;
  }
  auto name = session::ParseArrayName(record.name(), "name");
  absl::Status added = name.status();
  if (added.ok()) {
    added = core_.catalogue.AddArray(transaction, array->tenant, *name, array, core_.Now(),
                                     session::Catalogue::Quota::kExempt);
  }
  if (!added.ok()) {
    core_.recorder->Erase(transaction, array->tenant, Kind::kArray, id);
    return;
  }
  if (!name->session.empty() && array->buffer != nullptr && !array->buffer->replicas.empty() &&
      core_.IsDevice(array->buffer->replicas.begin()->first)) {
    auto session = sessions_.find({record.tenant(), name->session});
    if (session != sessions_.end())
      session->second->home_device = array->buffer->replicas.begin()->first;
  }
  arrays_[id] = array;
  RestoreUpload(transaction, record, array);
}

void Recovery::RestoreUpload(GlobalTransaction& transaction, const recovery::ArrayRecord& record,
                             const std::shared_ptr<session::Array>& array) {
  int device = core_.PlaceIndex(record.receiving().device());
  if (!record.has_receiving() || array->buffer == nullptr) return;
  if (device < 0) {
    array->buffer->Spoil(DataLost());
  } else {
    parts_.arrays->RestoreReceiving(transaction, array, device, record.receiving());
  }
}

// A job is accepted once its own record exists. The arrays and tasks of a job without one are
// removed, so that the client can submit it again.
void Recovery::AbandonUnacceptedJobs(GlobalTransaction& transaction) {
  auto accepted = [&](const recovery::SessionRecord& session) {
    return std::any_of(books_.jobs.begin(), books_.jobs.end(), [&](const auto& job) {
      return job.second.tenant() == session.tenant() &&
             job.second.session() == absl::StrCat("sessions/", session.id());
    });
  };
  for (const auto& [id, session] : books_.sessions) {
    if (!session.of_job() || accepted(session)) continue;
    TenantId tenant{session.tenant()};
    for (auto task = books_.tasks.begin(); task != books_.tasks.end();) {
      if (task->second.tenant() != session.tenant() || task->second.session() != session.id()) {
        ++task;
        continue;
      }
      for (const recovery::UseRecord& use : task->second.uses()) {
        auto buffer = buffers_.find(use.buffer());
        if ((use.flags() & kUseFresh) == 0 || buffer == buffers_.end()) continue;
        buffer->second->Spoil(MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED,
                                        "the job was not accepted"));
        for (auto& [array_id, array] : arrays_) {
          auto name = session::ParseArrayName(array->name.ToString(), "name");
          if (array->buffer == buffer->second && name.ok() && name->session.empty())
            core_.catalogue.RemoveArray(transaction, tenant, *name, core_.Now()).IgnoreError();
        }
      }
      core_.recorder->Erase(transaction, tenant, Kind::kTask, task->first);
      core_.recorder->Erase(transaction, tenant, Kind::kDispatch, task->first);
      task = books_.tasks.erase(task);
    }
    core_.catalogue.DeleteSession(transaction, tenant, session.id());
  }
}

bool Recovery::Repeatable(const recovery::DispatchRecord& dispatch) const {
  return dispatch.num_deaths() + 1 < kMaxTaskAttempts && !WritesInPlace(dispatch);
}

// Whether the task, or a part of it, was the first in its worker's queue that had begun and not
// ended.
bool Recovery::WasRunning(const recovery::DispatchRecord& dispatch) const {
  auto found = progress_.find(dispatch.worker());
  if (found == progress_.end() || !found->second.has_value()) return true;
  const QueueProgress& progress = *found->second;
  const uint32_t next = progress.completed + 1;
  return AtOrBefore(next, progress.started) && AtOrBefore(dispatch.first_sequence(), next) &&
         !AtOrBefore(dispatch.last_sequence(), progress.completed);
}

QueuedTask Recovery::AsQueued(uint64_t id) const {
  const recovery::DispatchRecord& dispatch = books_.dispatches.at(id);
  const recovery::TaskRecord& task = books_.tasks.at(id);
  QueuedTask queued{.first_sequence = dispatch.first_sequence(),
                    .last_sequence = dispatch.last_sequence(),
                    .repeatable = Repeatable(dispatch),
                    .cancelled = dispatch.has_recall(),
                    .running = WasRunning(dispatch)};
  for (int i = 0; i < std::min(dispatch.flags_size(), task.uses_size()); ++i) {
    queued.uses.push_back({.buffer = task.uses(i).buffer(),
                           .write = (dispatch.flags(i) & kUseWrite) != 0,
                           .fresh = (dispatch.flags(i) & kUseFresh) != 0});
  }
  return queued;
}

void Recovery::JudgeTasks() {
  std::map<uint64_t, std::vector<uint64_t>> queues;  // tasks by worker
  for (const auto& [id, record] : books_.tasks) {
    auto dispatch = books_.dispatches.find(id);
    if (dispatch == books_.dispatches.end()) {
      fates_[id] = Fate::kAgain;
    } else {
      queues[dispatch->second.worker()].push_back(id);
    }
  }
  for (auto& [worker, ids] : queues) {
    std::sort(ids.begin(), ids.end(), [&](uint64_t a, uint64_t b) {
      return books_.dispatches.at(a).last_sequence() < books_.dispatches.at(b).last_sequence();
    });
    std::vector<QueuedTask> queue;
    for (uint64_t id : ids) queue.push_back(AsQueued(id));
    auto progress = progress_.find(worker);
    const bool known = progress != progress_.end() && progress->second.has_value();
    const std::vector<Fate> fates = known ? FatesOf(queue, *progress->second) : std::vector<Fate>();
    for (size_t i = 0; i < ids.size(); ++i) {
      // If the worker's progress is not known, any of its tasks may have been running.
      fates_[ids[i]] = known ? fates[i] : queue[i].repeatable ? Fate::kAgain : Fate::kLost;
    }
  }
}

// The error of the inputs of a task that has run; its outputs carry it too.
absl::Status Recovery::InputError(uint64_t id) const {
  const recovery::DispatchRecord& dispatch = books_.dispatches.at(id);
  if (dispatch.has_lost_input()) return StatusFrom(dispatch.lost_input());
  for (const recovery::UseRecord& use : books_.tasks.at(id).uses()) {
    auto buffer = buffers_.find(use.buffer());
    if (buffer == buffers_.end() || (use.flags() & kUseFresh) != 0) continue;
    if (!buffer->second->error.ok()) return buffer->second->error;
  }
  return absl::OkStatus();
}

// Ends a task and erases its records. Buffers that it may have written carry `status` if that is an
// error.
void Recovery::End(GlobalTransaction& transaction, uint64_t id, const absl::Status& status) {
  const recovery::TaskRecord& record = books_.tasks.at(id);
  auto dispatch = books_.dispatches.find(id);
  for (int i = 0; !status.ok() && i < record.uses_size(); ++i) {
    bool dispatched = dispatch != books_.dispatches.end() && i < dispatch->second.flags_size();
    uint32_t flags = dispatched ? dispatch->second.flags(i) : record.uses(i).flags();
    bool spoiled = (flags & kUseWrite) != 0 && ((flags & kUseFresh) != 0 || dispatched);
    auto buffer = buffers_.find(record.uses(i).buffer());
    if (spoiled && buffer != buffers_.end()) buffer->second->Spoil(status);
  }
  const TenantId tenant{record.tenant()};
  core_.recorder->Erase(transaction, tenant, Kind::kTask, id);
  core_.recorder->Erase(transaction, tenant, Kind::kDispatch, id);
  if (!record.of_job()) return;
  recovery::TaskResultRecord& result = books_.results[id];
  if (!status.ok()) SetStatus(status, result.mutable_status());
  result.set_submit_time(record.submit_time());
  result.set_end_time(ToRecord(core_.Now()));
  if (dispatch != books_.dispatches.end())
    result.set_dispatch_time(dispatch->second.dispatch_time());
  core_.recorder->Set(transaction, tenant, Kind::kTaskResult, id, result);
}

std::shared_ptr<Task> Recovery::MakeTask(GlobalTransaction& transaction, uint64_t id,
                                         const recovery::TaskRecord& record, absl::Status* error) {
  auto task = MakePooled<Task>();
  task->id = id;
  task->tenant = TenantId{record.tenant()};
  auto session = sessions_.find({record.tenant(), record.session()});
  if (session != sessions_.end()) task->session = session->second;
  task->label = record.label();
  auto planned = MakePlanned({});
  ops::Plan& plan = planned->plan;
  task->planned = planned;
  plan.task = record.task();
  if (record.has_code()) plan.code = record.code();
  plan.outputs.resize(record.num_outputs());
  plan.zeroed_outputs.assign(record.zeroed_outputs().begin(), record.zeroed_outputs().end());
  plan.bytes = record.bytes();
  plan.flops = record.flops();
  plan.required_kind = record.required_kind();
  if (record.replay() != 0) {
    task->replay = FindReplay(transaction, task->tenant, record.replay());
    if (task->replay == nullptr) {
      *error = DataLost();
    } else {
      plan.task.mutable_graph()->set_graph(task->replay->id);
    }
  }
  if (!record.operation().empty()) {
    auto operation = std::make_shared<v1::Operation>();
    operation->ParseFromString(record.operation());
    task->kernel = std::make_unique<KernelArguments>();
    task->kernel->operation = std::move(operation);
    for (const recovery::InputRecord& input : record.inputs()) {
      auto info = InfoFrom(input.info());
      task->kernel->inputs.push_back(input.has_info() && info.ok() ? ops::Input(*std::move(info))
                                                                   : std::nullopt);
    }
    task->kernel->bound = record.arguments_bound();
    task->kernel->control =
        core_.accounts->ControlOf(task->tenant)
            ->Hold(3 * static_cast<int64_t>(task->kernel->operation->ByteSizeLong() +
                                            record.code().ByteSizeLong()));
  }
  for (const recovery::UseRecord& use : record.uses()) {
    Use made{.read = (use.flags() & kUseRead) != 0,
             .write = (use.flags() & kUseWrite) != 0,
             .fresh = (use.flags() & kUseFresh) != 0};
    auto buffer = buffers_.find(use.buffer());
    if (buffer != buffers_.end()) {
      made.buffer = buffer->second;
    } else if (use.buffer() != 0) {
      *error = DataLost();
    }
    task->uses.push_back(std::move(made));
  }
  if (!record.pinned_device().empty()) {
    task->pinned_device = core_.DeviceIndex(record.pinned_device());
    if (task->pinned_device < 0)
      *error = MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                         absl::StrCat("the device is gone: devices/", record.pinned_device()));
  }
  task->priority = record.priority();
  task->drop_other_replicas = record.drop_other_replicas();
  task->deadline = TimeFrom(record.deadline(), SteadyTime::InfiniteFuture());
  task->submit_time = TimeFrom(record.submit_time(), SteadyTime());
  task->of_job = record.of_job();
  task->recorded = true;
  return task;
}

// One Replay for all tasks that refer to the record, which is erased after the last of them.
std::shared_ptr<Replay> Recovery::FindReplay(GlobalTransaction& transaction, const TenantId& tenant,
                                             uint64_t record) {
  std::shared_ptr<Replay>& replay = replays_[record];
  auto found = books_.replays.find(record);
  if (replay == nullptr && found != books_.replays.end()) {
    replay = std::make_shared<Replay>(core_.recorder->NewId(), GraphFrom(found->second));
    core_.recorder->Adopt(transaction, tenant, *replay, record);
  }
  return replay;
}

void Recovery::RestoreTasks(GlobalTransaction& transaction) {
  for (const auto& [id, record] : books_.tasks) {
    if (record.bodies()) {
      End(transaction, id,
          MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                    "the daemon ended while the loop or branch ran; call it again",
                    {{"operation", record.label()}}));
      continue;
    }
    if (fates_[id] != Fate::kAgain) {
      End(transaction, id,
          fates_[id] == Fate::kDone
              ? InputError(id)
              : DaemonEnded(record.label(), WritesInPlace(books_.dispatches.at(id))));
      continue;
    }
    absl::Status error;
    std::shared_ptr<Task> task = MakeTask(transaction, id, record, &error);
    if (!error.ok()) {
      End(transaction, id, error);
      continue;
    }
    auto dispatch = books_.dispatches.find(id);
    if (dispatch != books_.dispatches.end()) {
      task->num_deaths = dispatch->second.num_deaths() + (WasRunning(dispatch->second) ? 1 : 0);
      task->recall = StatusFrom(dispatch->second.recall());
      task->lost_input = StatusFrom(dispatch->second.lost_input());
    }
    core_.recorder->TakenBack(transaction, *task);
    for (const Use& use : task->uses) {
      if (use.buffer != nullptr && use.fresh) use.buffer->KeepOnly(-1);
    }
    parts_.scheduler->Restore(transaction, task);
    tasks_[id] = task;
    resumed_.push_back(task);
  }
  for (const auto& [id, record] : books_.replays) {
    if (replays_.count(id) == 0) core_.recorder->EraseWherever(transaction, Kind::kReplay, id);
  }
}

// Ends the wait for uploads whose array was released: no client can complete them.
void Recovery::SpoilWhatNobodyFills() {
  for (const auto& [id, record] : books_.buffers) {
    const std::shared_ptr<store::Buffer>& buffer = buffers_[id];
    if (!record.incoming() || buffer->writer != nullptr) continue;
    buffer->Spoil(MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_ARRAY_NOT_READY,
                            "the array was released before its upload was complete"));
  }
}

void Recovery::SpoilWhatIsGone() {
  for (const auto& [id, buffer] : buffers_) {
    bool being_made = buffer->writer != nullptr;
    bool there = !buffer->replicas.empty() || buffer->inline_bytes != nullptr;
    if (!being_made && !there) buffer->Spoil(DataLost());
  }
}

void Recovery::RestoreJobs() {
  std::set<uint64_t> wanted;
  for (const auto& [id, record] : books_.jobs) {
    parts_.jobs->Restore(id, record, {tasks_, books_.results, arrays_});
    wanted.insert(record.tasks().begin(), record.tasks().end());
  }
  GlobalTransaction transaction(core_);
  for (const auto& [id, result] : books_.results) {
    if (wanted.count(id) == 0) core_.recorder->EraseWherever(transaction, Kind::kTaskResult, id);
  }
}

}  // namespace stride::scheduler
