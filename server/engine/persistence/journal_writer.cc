#include "server/engine/persistence/journal_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/broker/worker.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/program_launch.h"
#include "server/engine/persistence/state_codec.h"
#include "server/engine/persistence/task_codec.h"
#include "server/recovery/records.pb.h"

namespace stride::engine {

using recovery::Key;
using recovery::Kind;

namespace {

// Serializes the record into the journal's memory. `begin`: fields that are serialized already.
void Put(recovery::Journal& journal, uint64_t key, const google::protobuf::MessageLite& record,
         std::string_view begin = {}) {
  const size_t size = begin.size() + record.ByteSizeLong();
  char* room = journal.Set(key, static_cast<uint32_t>(size));
  if (room == nullptr) return;
  room = std::copy(begin.begin(), begin.end(), room);
  record.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(room));
}

}  // namespace

// Records that every operation fills, reused to avoid allocations.
struct JournalWriter::Scratch {
  recovery::ArrayRecord array;
  recovery::BufferRecord buffer;
  recovery::TaskRecord task;
  recovery::DispatchRecord dispatch;
};

JournalWriter::JournalWriter(Core* core) : core_(core) {
  core->journal_writer = this;
  for (Part& part : parts_.Unguarded()) {
    part.dead_launches = std::make_shared<DeadRecords>();
    part.scratch = std::make_unique<Scratch>();
  }
}
JournalWriter::~JournalWriter() = default;

void JournalWriter::Start(fd_store::FdStore* fd_store, std::unique_ptr<recovery::Journals> journals,
                          uint64_t last_id) {
  fd_store_ = fd_store;
  journals_ = std::move(journals);
  for (int partition = 0; partition < kNumTenantPartitions; ++partition)
    parts_.Unguarded()[partition].journal = &journals_->of(partition);
  last_id_ = last_id;
  started_ = on_ = true;
}

void JournalWriter::Stop(GlobalTransaction& transaction) {
  on_ = false;
  journals_.reset();
}

void JournalWriter::Recovered(GlobalTransaction& transaction) {
  if (on()) journals_->common().ResetAttempts();
}

void JournalWriter::Complete(GlobalTransaction& transaction) {
  Commit(transaction);
  if (!on()) return;
  if (absl::Status status = journals_->Complete(); !status.ok()) Broken(status);
}

void JournalWriter::Trim(TenantTransaction& transaction, int partition) {
  if (on()) parts_.At(transaction, partition).journal->Trim();
}

// Abandons all journals when one fails: recovery must not trust the others without it.
void JournalWriter::Broken(const absl::Status& status) {
  if (!on_.exchange(false)) return;
  journals_->LetGo();
  core_->options.log(absl::StrCat(
      "the journal cannot go on: a restart would lose everything from now on: ", status.message()));
}

JournalWriter::Part& JournalWriter::PartOf(TenantTransaction& transaction, const TenantId& tenant) {
  if (transaction.is_global()) touched_ |= PartitionBit(transaction.PartitionOf(tenant));
  return parts_.Of(transaction, tenant);
}

void JournalWriter::WriteChanges(TenantTransaction& transaction) {
  if (!transaction.is_global()) {
    WriteChanges(transaction, transaction.partition());
    return;
  }
  ForEachBit(std::exchange(touched_, 0) | core_->reclaimer->used_partitions(),
             [&](int partition) { WriteChanges(transaction, partition); });
  if (!on()) return;
  for (const std::string& name : std::exchange(removals_, {})) fd_store_->Remove(name);
}

void JournalWriter::WriteChanges(TenantTransaction& transaction, int partition) {
  Part& part = parts_.At(transaction, partition);
  if (on()) {
    for (const auto& program_launch : part.program_launches) {
      recovery::ProgramLaunchRecord record;
      ToRecord(program_launch->graph, &record);
      Put(*part.journal, Key(Kind::kProgramLaunch, program_launch->record), record);
    }
    for (const auto& array : part.arrays) {
      if (array->record != 0) Write(*array, part);
      array->changed = false;
    }
    for (const auto& task : part.tasks) Write(*task, part);
  }
  part.program_launches.clear();
  part.arrays.clear();
  part.tasks.clear();
  WriteBuffers(partition, part);
  if (!on()) return;
  if (part.dead_launches->any()) {
    for (uint64_t record : part.dead_launches->Take())
      part.journal->Erase(Key(Kind::kProgramLaunch, record));
  }
  if (absl::Status status = part.journal->Commit(); !status.ok()) Broken(status);
}

// Writes buffers that changed, and erases the records of dead ones. Without journals it only drops
// the lists.
void JournalWriter::WriteBuffers(int partition, Part& part) {
  store::Reclaimer& reclaimer = *core_->reclaimer;
  if (reclaimer.any_changed(partition)) {
    for (auto& buffer : reclaimer.TakeChanged(partition)) {
      buffer->changed = false;
      bool unused =
          buffer.use_count() == 1;  // the list has the last reference: the record is erased below
      if (!unused && on()) Write(*buffer, part);
    }
  }
  for (uint64_t record : reclaimer.TakeDeadRecords(partition)) {
    if (!on()) continue;
    part.journal->Erase(Key(Kind::kBuffer, record));
    part.journal->Erase(Key(Kind::kInlineBytes, record));
  }
}

void JournalWriter::Added(GlobalTransaction& transaction, session::Session& session) {
  if (!on()) return;
  if (session.record == 0) session.record = NewId();
  recovery::SessionRecord record;
  ToRecord(session, &record);
  Set(transaction, session.tenant, Kind::kSession, session.record, record);
}

void JournalWriter::Removed(GlobalTransaction& transaction, session::Session& session) {
  if (session.record != 0) Erase(transaction, session.tenant, Kind::kSession, session.record);
}

void JournalWriter::Added(TenantTransaction& transaction,
                          const std::shared_ptr<session::Array>& array) {
  if (!on()) return;
  if (array->record == 0) array->record = NewId();
  if (array->buffer != nullptr) RecordBuffer(transaction, array->buffer);
  if (array->shards != nullptr) {
    for (const auto& part : array->shards->parts) Added(transaction, part);
  }
  Changed(transaction, array);
}

void JournalWriter::Changed(TenantTransaction& transaction,
                            const std::shared_ptr<session::Array>& array) {
  if (!on() || array->record == 0 || std::exchange(array->changed, true)) return;
  PartOf(transaction, array->tenant).arrays.push_back(array);
}

void JournalWriter::Removed(TenantTransaction& transaction, session::Array& array) {
  if (!on() || array.record == 0) return;
  PartOf(transaction, array.tenant).journal->Erase(Key(Kind::kArray, array.record));
  array.record = 0;
  if (array.shards == nullptr) return;
  for (const auto& part : array.shards->parts) Removed(transaction, *part);
}

void JournalWriter::RecordBuffer(TenantTransaction& transaction,
                                 const std::shared_ptr<store::Buffer>& buffer) {
  if (buffer->record != 0) return;
  buffer->record = NewId();
  buffer->changed = true;
  core_->reclaimer->AddChanged(buffer);
  // The task that computes its content has to be recovered too.
  auto writer = std::static_pointer_cast<Task>(buffer->writer);
  if (writer != nullptr && !writer->options.host_access) RecordTask(transaction, writer);
}

void JournalWriter::RecordTask(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->journal.recorded || task->state == TaskState::kDone) return;
  task->journal.recorded = true;
  task->journal.changed = true;
  Part& part = PartOf(transaction, task->tenant);
  part.tasks.push_back(task);
  if (task->program_launch != nullptr &&
      task->program_launch->record == 0) {  // once: the records of its tasks refer to it
    Adopt(transaction, task->tenant, *task->program_launch, NewId());
    part.program_launches.push_back(task->program_launch);
  }
  for (const Use& use : task->uses) {
    if (use.buffer != nullptr) RecordBuffer(transaction, use.buffer);
  }
}

void JournalWriter::Accepted(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (!on() || task->options.host_access) return;
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.write || use.buffer->record == 0) continue;
    RecordTask(transaction, task);
    return;
  }
}

void JournalWriter::Changed(TenantTransaction& transaction, Task& task) {
  if (!on() || !task.journal.recorded || std::exchange(task.journal.changed, true)) return;
  PartOf(transaction, task.tenant).tasks.push_back(task.shared_from_this());
}

void JournalWriter::Write(const session::Array& array, Part& part) {
  recovery::ArrayRecord& record = part.scratch->array;
  record.Clear();
  ToRecord(array, core_->spaces, Outlives::kProcess, &record);
  Put(*part.journal, Key(Kind::kArray, array.record), record);
}

void JournalWriter::Write(store::Buffer& buffer, Part& part) {
  recovery::Journal& journal = *part.journal;
  recovery::BufferRecord& record = part.scratch->buffer;
  record.Clear();
  ToRecord(buffer, &record);
  Put(journal, Key(Kind::kBuffer, buffer.record), record);
  // The bytes are written once, and only while no replica has them.
  uint64_t key = Key(Kind::kInlineBytes, buffer.record);
  bool needed = buffer.inline_bytes != nullptr && buffer.replicas.empty();
  if (!needed) {
    journal.Erase(key);
  } else if (!journal.Has(key)) {
    journal.Set(key, *buffer.inline_bytes);
  }
}

void JournalWriter::Write(Task& task, Part& part) {
  task.journal.changed = false;
  recovery::Journal& journal = *part.journal;
  uint64_t body = Key(Kind::kTask, task.id), dispatch = Key(Kind::kDispatch, task.id);
  if (task.state == TaskState::kDone) {
    journal.Erase(body);
    journal.Erase(dispatch);
    if (task.options.of_job) {
      recovery::TaskResultRecord result;
      ToRecord(task, core_->spaces, &result);
      Put(journal, Key(Kind::kTaskResult, task.id), result);
    }
    task.journal.recorded = false;  // later changes write no record
    return;
  }
  if (!journal.Has(body)) {
    // With its dispatch, if the task was dispatched.
    EncodeTask(task, core_->spaces, &part.scratch->task,
               [&](const recovery::TaskRecord& record, std::string_view begin) {
                 Put(journal, body, record, begin);
               });
    return;
  }
  // A task that was taken back gets an empty record, which overrides the dispatch in its body.
  recovery::DispatchRecord& record = part.scratch->dispatch;
  record.Clear();
  if (task.state == TaskState::kDispatched) ToRecord(task, &record);
  Put(journal, dispatch, record);
}

void JournalWriter::Adopt(TenantTransaction& transaction, const TenantId& tenant,
                          ProgramLaunch& program_launch, uint64_t record) {
  program_launch.record = record;
  program_launch.dead = PartOf(transaction, tenant).dead_launches;
}

void JournalWriter::TakenBack(GlobalTransaction& transaction, const Task& task) {
  Set(transaction, task.tenant, Kind::kDispatch, task.id, recovery::DispatchRecord());
}

absl::Status JournalWriter::StoreArena(const store::Arena& arena) {
  if (!on()) return absl::OkStatus();
  STRIDE_CRASH_POINT("arena.before_store");
  absl::Status status = fd_store_->Store(recovery::ArenaName(arena.id), arena.fd.get());
  STRIDE_CRASH_POINT("arena.after_store");
  return status;
}

void JournalWriter::Added(GlobalTransaction& transaction, const store::Arena& arena,
                          const DeviceQueue& queue) {
  if (!on()) return;
  recovery::ArenaRecord record;
  record.set_tenant(queue.tenant.value);
  record.set_device(queue.description.id());
  record.set_size(arena.size);
  record.set_alone(arena.alone);
  Set(transaction, queue.tenant, Kind::kArena, arena.id, record);
}

void JournalWriter::Removed(GlobalTransaction& transaction, const store::Arena& arena,
                            const DeviceQueue& queue) {
  if (!on()) return;
  Erase(transaction, queue.tenant, Kind::kArena, arena.id);
  removals_.push_back(recovery::ArenaName(arena.id));
}

uint64_t JournalWriter::StoreWorker(broker::Worker& worker) {
  if (!on()) return 0;
  uint64_t record = NewId();
  // Without them the next daemon treats the progress of the worker as unknown.
  if (worker.status_page() >= 0)
    fd_store_->Store(recovery::StatusPageName(record), worker.status_page()).IgnoreError();
  if (worker.process() >= 0)
    fd_store_->Store(recovery::ProcessName(record), worker.process()).IgnoreError();
  return record;
}

void JournalWriter::WorkerAdopted(GlobalTransaction& transaction, uint64_t record,
                                  const DeviceQueue& queue) {
  if (!on() || record == 0) return;
  recovery::WorkerRecord worker;
  worker.set_tenant(queue.tenant.value);
  worker.set_device(queue.description.id());
  Set(transaction, queue.tenant, Kind::kWorker, record, worker);
}

void JournalWriter::WorkerGone(GlobalTransaction& transaction, const TenantId& tenant,
                               uint64_t record) {
  if (!on() || record == 0) return;
  Erase(transaction, tenant, Kind::kWorker, record);
  removals_.push_back(recovery::StatusPageName(record));
  removals_.push_back(recovery::ProcessName(record));
}

void JournalWriter::Set(TenantTransaction& transaction, const TenantId& tenant, Kind kind,
                        uint64_t id, const google::protobuf::MessageLite& record) {
  if (on()) Put(*PartOf(transaction, tenant).journal, Key(kind, id), record);
}

void JournalWriter::Erase(TenantTransaction& transaction, const TenantId& tenant, Kind kind,
                          uint64_t id) {
  if (on()) PartOf(transaction, tenant).journal->Erase(Key(kind, id));
}

void JournalWriter::EraseWherever(GlobalTransaction& transaction, Kind kind, uint64_t id) {
  if (!on()) return;
  touched_ = ~uint64_t{0};
  journals_->Erase(Key(kind, id));
}

}  // namespace stride::engine
