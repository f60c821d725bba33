#include "server/engine/recovery.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/base/steady_time.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/persistence/record_convert.h"
#include "server/engine/persistence/task_codec.h"
#include "server/session/resource_name.h"
#include "server/store/spill_file.h"
#include "server/wire/status_page.h"

namespace stride::engine {

using recovery::Key;
using recovery::Kind;

namespace {

// After this many daemons in a row died while they read the journals, the journals are to blame.
constexpr uint32_t kMaxAttempts = 10;
constexpr int kWorkerEndMs = 5000;

absl::Status DaemonEnded(const std::string& label, bool in_place) {
  return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                   in_place ? "the daemon ended while the operation changed this array in place; "
                              "it is not known how far it came"
                            : "the operation failed; why was lost with the daemon, and its inputs "
                              "have changed since",
                   {{"operation", label}});
}

// Whether the descriptor is meaningless without the journals.
bool BelongsToJournal(const std::string& name) {
  for (const char* prefix : {"arena-", "page-", "process-"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return recovery::Journals::IsFileName(name);
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

void Recovery::Run(fd_store::FdStore* fd_store, std::vector<NamedFd> kept) {
  const bool keeps = fd_store != nullptr && fd_store->keeps();
  const bool from_journals = keeps && FromJournals(fd_store, std::move(kept));
  if (core_.array_persister != nullptr && !from_journals) FromDisk();
  GlobalTransaction transaction(core_);
  if (core_.array_persister != nullptr)
    core_.array_persister->Reconcile(transaction, /*with_jobs=*/from_journals);
  core_.journal_writer->Complete(transaction);
}

bool Recovery::FromJournals(fd_store::FdStore* fd_store, std::vector<NamedFd> kept) {
  fd_store_ = fd_store;
  for (NamedFd& entry : kept) fds_[entry.name] = std::move(entry.fd);
  auto journals = OpenJournals();
  if (!journals.ok()) {
    StartAnew(journals.status());
    return false;
  }
  EndOldWorkers();
  {
    GlobalTransaction transaction(core_);
    core_.journal_writer->Start(fd_store_, *std::move(journals), records_.last_id);
    RestoreThings(transaction);
  }
  STRIDE_CRASH_POINT("recovery.things");
  RestoreJobs();
  {
    GlobalTransaction transaction(core_);
    for (const auto& task : resumed_) parts_.scheduler->Resume(transaction, task);
    core_.journal_writer->Recovered(transaction);
  }
  parts_.jobs->UpdateAll();
  STRIDE_CRASH_POINT("recovery.end");
  ForgetDescriptors();
  core_.options.log(absl::StrCat("recovered: ", sessions_.size(), " sessions, ", arrays_.size(),
                                 " arrays, ", records_.jobs.size(), " jobs, ", resumed_.size(),
                                 " operations to go on with, ", arenas_.size(), " arenas"));
  return true;
}

void Recovery::FromDisk() {
  from_disk_ = true;
  const durable::Rows& rows = core_.array_persister->rows();
  {
    GlobalTransaction transaction(core_);
    std::vector<std::string> damage;
    records_ = RecordSet::FromRows(rows, &damage);
    for (const std::string& line : damage)
      core_.options.log(absl::StrCat("damaged on disk and given up: ", line));
    RestoreThings(transaction);
  }
  if (!rows.arrays.empty() || !rows.jobs.empty()) {
    core_.options.log(absl::StrCat("found on disk: ", arrays_.size(), " arrays (",
                                   core_.array_persister->used_bytes(), " bytes), ",
                                   rows.jobs.size(), " jobs"));
  }
  STRIDE_CRASH_POINT("durable.arrays_restored");
  for (const auto& [id, row] : rows.jobs) parts_.jobs->RestoreFromDisk(row);
  STRIDE_CRASH_POINT("durable.jobs_restored");
}

absl::StatusOr<std::unique_ptr<recovery::Journals>> Recovery::OpenJournals() {
  auto journals = recovery::Journals::Open(fd_store_, &fds_);
  if (!journals.ok()) return journals.status();
  if ((*journals)->common().CountAttempt() > kMaxAttempts)
    return absl::DataLossError("no daemon survived the recovery from the journal");
  auto records = RecordSet::FromJournals(**journals);
  if (!records.ok()) return records.status();
  records_ = *std::move(records);
  return journals;
}

// Begins empty journals: there are none, or they cannot be trusted.
void Recovery::StartAnew(const absl::Status& why) {
  if (!absl::IsNotFound(why))
    core_.options.log(absl::StrCat(core_.array_persister == nullptr
                                       ? "ALL ARRAYS AND JOBS ARE LOST: "
                                       : "ALL ARRAYS AND JOBS THAT ARE NOT ON DISK ARE LOST: ",
                                   why.message()));
  ForgetDescriptors();
  auto journals = recovery::Journals::Create(fd_store_);
  if (!journals.ok()) {
    core_.options.log(
        absl::StrCat("nothing will outlive this process: ", journals.status().message()));
    return;
  }
  GlobalTransaction transaction(core_);
  core_.journal_writer->Start(fd_store_, *std::move(journals), 0);
}

void Recovery::ForgetDescriptors() {
  for (const auto& [name, fd] : fds_) {
    bool in_use = recovery::Journals::IsFileName(name) ||
                  std::any_of(arenas_.begin(), arenas_.end(), [&](const auto& entry) {
                    return recovery::ArenaName(entry.first) == name;
                  });
    if (BelongsToJournal(name) && !(in_use && core_.journal_writer->on())) fd_store_->Remove(name);
  }
  fds_.clear();
}

void Recovery::EndOldWorkers() {
  for (const auto& [id, record] : records_.workers) {
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

template <typename Record>
uint64_t Recovery::Recorded(GlobalTransaction& transaction, Kind kind, uint64_t id,
                            const Record& record) {
  if (!from_disk_) return id;
  const uint64_t recorded = core_.journal_writer->NewId();
  core_.journal_writer->Set(transaction, TenantId{record.tenant()}, kind, recorded, record);
  return recorded;
}

void Recovery::RestoreThings(GlobalTransaction& transaction) {
  RestoreArenas(transaction);
  RestoreBuffers();
  RestoreSessions(transaction);
  RestoreArrays(transaction);
  SpoilWhatNobodyFills();
  if (core_.array_persister != nullptr) core_.array_persister->RestoreLoads(transaction);
  for (const auto& [id, record] : records_.modules)
    parts_.modules->Restore(transaction, id, record);
  for (const auto& [id, record] : records_.functions) {
    const uint64_t recorded = Recorded(transaction, Kind::kFunction, id, record);
    parts_.functions->Restore(transaction, recorded, record);
  }
  for (const auto& [id, record] : records_.programs) {
    const uint64_t recorded = Recorded(transaction, Kind::kProgram, id, record);
    parts_.programs->Restore(transaction, recorded, record);
  }
  AbandonUnacceptedJobs(transaction);
  dispositions_ = DispositionsOf(records_, progress_);
  RestoreTasks(transaction);
  SpoilWhatIsGone();
  for (const auto& [id, record] : records_.workers)
    core_.journal_writer->WorkerGone(transaction, TenantId{record.tenant()}, id);
  parts_.operations->ResumeIdsAt(records_.last_task + 1);
  buffers_.clear();  // ends unused buffers, whose records are then erased
}

void Recovery::RestoreArenas(GlobalTransaction& transaction) {
  for (const auto& [id, record] : records_.arenas) {
    int device = core_.spaces.Find(record.device());
    auto fd = fds_.find(recovery::ArenaName(id));
    bool there = device >= 0 && fd != fds_.end();
    MemoryMap map;
    if (there && device == core_.disk_place())
      there = store::CheckSpillFile(fd->second.get(), record.size()).ok();
    if (there && core_.MemorySpace(device).host_memory()) {
      auto mapped = CheckMemoryFile(fd->second.get(), record.size()).ok()
                        ? MemoryMap::Map(fd->second.get(), record.size(), /*writable=*/true)
                        : absl::StatusOr<MemoryMap>(ContentLost());
      there = mapped.ok();
      if (there) map = *std::move(mapped);
    }
    if (!there) {
      core_.journal_writer->Erase(transaction, TenantId{record.tenant()}, Kind::kArena, id);
      continue;
    }
    auto arena =
        std::make_shared<store::Arena>(id, record.size(), std::move(fd->second), std::move(map));
    arena->alone = record.alone();
    arena->num_blocks = UINT64_MAX;  // the count is lost; lent_blocks.cc asks whether it is 1
    DeviceQueue& queue =
        parts_.scheduler->queues().Get(transaction, TenantId{record.tenant()}, device);
    parts_.scheduler->memory().arenas().Restore(transaction, queue, arena);
    arenas_[id] = {arena, device};
  }
}

void Recovery::RestoreBuffers() {
  for (auto& [id, record] : records_.buffers) {
    auto buffer = BufferFrom(IdOf(id), record, arenas_, core_.reclaimer);
    // The saved version is of no use: without a disk store, changes are not tracked.
    if (core_.array_persister == nullptr) buffer->SetKept(0);
    auto bytes = records_.inline_bytes.find(id);
    if (bytes != records_.inline_bytes.end())
      buffer->inline_bytes = std::make_shared<const std::string>(std::move(bytes->second));
    buffers_[id] = std::move(buffer);
  }
}

void Recovery::RestoreSessions(GlobalTransaction& transaction) {
  for (const auto& [id, record] : records_.sessions) {
    auto session = SessionFrom(id, record, core_.Now());
    sessions_[{record.tenant(), record.id()}] = session;
    core_.catalogue.Restore(transaction, session);
  }
}

void Recovery::RestoreArrays(GlobalTransaction& transaction) {
  // Arrays without a name are parts of sharded ones, and are restored first.
  for (const auto& [id, record] : records_.arrays) {
    if (record.name().empty()) RestoreArray(transaction, id, record);
  }
  for (const auto& [id, record] : records_.arrays) {
    if (!record.name().empty()) RestoreArray(transaction, id, record);
  }
  for (const auto& [id, part] : array_parts_) {
    if (part.use_count() == 1)
      core_.journal_writer->Erase(transaction, part->tenant, Kind::kArray, id);  // part of no array
  }
  array_parts_.clear();
}

void Recovery::RestoreArray(GlobalTransaction& transaction, uint64_t id,
                            const recovery::ArrayRecord& record) {
  auto array = ArrayFrom(IdOf(id), record, core_.spaces, buffers_, array_parts_);
  if (core_.array_persister == nullptr) array->durable = 0;
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
    core_.journal_writer->Erase(transaction, array->tenant, Kind::kArray, array->record);
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
  int device = core_.spaces.Find(record.receiving().device());
  if (!record.has_receiving() || array->buffer == nullptr) return;
  if (device < 0) {
    array->buffer->Spoil(ContentLost());
  } else {
    parts_.arrays->RestoreReceiving(transaction, array, device, record.receiving());
  }
}

// A job is accepted once its own record exists. The arrays and tasks of a job without one are
// removed, so that the client can submit it again.
void Recovery::AbandonUnacceptedJobs(GlobalTransaction& transaction) {
  auto accepted = [&](const recovery::SessionRecord& session) {
    return std::any_of(records_.jobs.begin(), records_.jobs.end(), [&](const auto& job) {
      return job.second.tenant() == session.tenant() &&
             job.second.session() == absl::StrCat("sessions/", session.id());
    });
  };
  for (const auto& [id, session] : records_.sessions) {
    if (!session.of_job() || accepted(session)) continue;
    TenantId tenant{session.tenant()};
    for (auto task = records_.tasks.begin(); task != records_.tasks.end();) {
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
      core_.journal_writer->Erase(transaction, tenant, Kind::kTask, task->first);
      core_.journal_writer->Erase(transaction, tenant, Kind::kDispatch, task->first);
      task = records_.tasks.erase(task);
    }
    core_.catalogue.DeleteSession(transaction, tenant, session.id());
  }
}

// The error of the inputs of a task that has run; its outputs carry it too.
absl::Status Recovery::InputError(uint64_t id) const {
  const recovery::DispatchRecord& dispatch = records_.dispatches.at(id);
  if (dispatch.has_lost_input()) return StatusFrom(dispatch.lost_input());
  for (const recovery::UseRecord& use : records_.tasks.at(id).uses()) {
    auto buffer = buffers_.find(use.buffer());
    if (buffer == buffers_.end() || (use.flags() & kUseFresh) != 0) continue;
    if (!buffer->second->error.ok()) return buffer->second->error;
  }
  return absl::OkStatus();
}

// Ends a task and erases its records. Buffers that it may have written carry `status` if that is an
// error.
void Recovery::End(GlobalTransaction& transaction, uint64_t id, const absl::Status& status) {
  const recovery::TaskRecord& record = records_.tasks.at(id);
  auto dispatch = records_.dispatches.find(id);
  for (int i = 0; !status.ok() && i < record.uses_size(); ++i) {
    bool dispatched = dispatch != records_.dispatches.end() && i < dispatch->second.flags_size();
    uint32_t flags = dispatched ? dispatch->second.flags(i) : record.uses(i).flags();
    bool spoiled = (flags & kUseWrite) != 0 && ((flags & kUseFresh) != 0 || dispatched);
    auto buffer = buffers_.find(record.uses(i).buffer());
    if (spoiled && buffer != buffers_.end()) buffer->second->Spoil(status);
  }
  const TenantId tenant{record.tenant()};
  core_.journal_writer->Erase(transaction, tenant, Kind::kTask, id);
  core_.journal_writer->Erase(transaction, tenant, Kind::kDispatch, id);
  if (!record.of_job()) return;
  recovery::TaskResultRecord& result = records_.results[id];
  if (!status.ok()) SetStatus(status, result.mutable_status());
  result.set_submit_time(record.submit_time());
  result.set_end_time(ToRecord(core_.Now()));
  if (dispatch != records_.dispatches.end())
    result.set_dispatch_time(dispatch->second.dispatch_time());
  core_.journal_writer->Set(transaction, tenant, Kind::kTaskResult, id, result);
}

absl::StatusOr<std::shared_ptr<Task>> Recovery::MakeTask(GlobalTransaction& transaction,
                                                         uint64_t id,
                                                         const recovery::TaskRecord& record) {
  TaskReferences references{.buffers = buffers_, .spaces = core_.spaces};
  auto session = sessions_.find({record.tenant(), record.session()});
  if (session != sessions_.end()) references.session = session->second;
  if (record.program_launch() != 0)
    references.program_launch =
        FindProgramLaunch(transaction, TenantId{record.tenant()}, record.program_launch());
  auto task = TaskFrom(id, record, references);
  if (task.ok() && (*task)->kernel != nullptr) {
    KernelArguments& kernel = *(*task)->kernel;
    kernel.control = core_.accounts->ControlOf((*task)->tenant)
                         ->Hold(3 * static_cast<int64_t>(kernel.operation->ByteSizeLong() +
                                                         record.code().ByteSizeLong()));
  }
  return task;
}

// One ProgramLaunch for all tasks that refer to the record, which is erased after the last of them.
std::shared_ptr<ProgramLaunch> Recovery::FindProgramLaunch(GlobalTransaction& transaction,
                                                           const TenantId& tenant,
                                                           uint64_t record) {
  std::shared_ptr<ProgramLaunch>& program_launch = program_launches_[record];
  auto found = records_.program_launches.find(record);
  if (program_launch == nullptr && found != records_.program_launches.end()) {
    program_launch =
        std::make_shared<ProgramLaunch>(core_.journal_writer->NewId(), GraphFrom(found->second));
    core_.journal_writer->Adopt(transaction, tenant, *program_launch, record);
  }
  return program_launch;
}

void Recovery::RestoreTasks(GlobalTransaction& transaction) {
  for (const auto& [id, record] : records_.tasks) {
    if (record.bodies()) {
      End(transaction, id,
          MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                    "the daemon ended while the loop or branch ran; call it again",
                    {{"operation", record.label()}}));
      continue;
    }
    if (dispositions_[id] != TaskDisposition::kAgain) {
      End(transaction, id,
          dispositions_[id] == TaskDisposition::kDone
              ? InputError(id)
              : DaemonEnded(record.label(), WritesInPlace(records_.dispatches.at(id))));
      continue;
    }
    auto made = MakeTask(transaction, id, record);
    if (!made.ok()) {
      End(transaction, id, made.status());
      continue;
    }
    const std::shared_ptr<Task>& task = *made;
    auto dispatch = records_.dispatches.find(id);
    if (dispatch != records_.dispatches.end()) {
      task->sent.num_deaths =
          dispatch->second.num_deaths() + (WasRunning(dispatch->second, progress_) ? 1 : 0);
      task->cancel.recall = StatusFrom(dispatch->second.recall());
      task->order.lost_input = StatusFrom(dispatch->second.lost_input());
    }
    core_.journal_writer->TakenBack(transaction, *task);
    for (const Use& use : task->uses) {
      if (use.buffer != nullptr && use.fresh) use.buffer->KeepOnly(-1);
    }
    parts_.scheduler->Restore(transaction, task);
    tasks_[id] = task;
    resumed_.push_back(task);
  }
  for (const auto& [id, record] : records_.program_launches) {
    if (program_launches_.count(id) == 0)
      core_.journal_writer->EraseWherever(transaction, Kind::kProgramLaunch, id);
  }
}

// Ends the wait for uploads whose array was released: no client can complete them.
void Recovery::SpoilWhatNobodyFills() {
  for (const auto& [id, record] : records_.buffers) {
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
    if (!being_made && !there) buffer->Spoil(ContentLost());
  }
}

void Recovery::RestoreJobs() {
  std::set<uint64_t> wanted;
  for (const auto& [id, record] : records_.jobs) {
    parts_.jobs->Restore(id, record, {tasks_, records_.results, arrays_});
    wanted.insert(record.tasks().begin(), record.tasks().end());
  }
  GlobalTransaction transaction(core_);
  for (const auto& [id, result] : records_.results) {
    if (wanted.count(id) == 0)
      core_.journal_writer->EraseWherever(transaction, Kind::kTaskResult, id);
  }
}

}  // namespace stride::engine
