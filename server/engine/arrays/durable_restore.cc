// ArrayPersister at the daemon's start: restores arrays from rows and files.

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/persistence/record_convert.h"
#include "server/engine/transfers/array_writer.h"
#include "server/recovery/records.pb.h"
#include "server/session/resource_name.h"

namespace stride::engine {
namespace {

constexpr size_t kChunk = size_t{4} << 20;
// Pause before another try where no memory, or no worker, was available.
constexpr absl::Duration kRetry = absl::Seconds(1);
constexpr absl::Duration kWritePatience = absl::Minutes(10);

absl::Status DataLost(absl::string_view how) {
  return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                   absl::StrCat("the array's content was lost while the machine was off: ", how));
}

absl::Status InputLost(const std::string& name) {
  return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                   absl::StrCat("an array that the job needs is not there any more as it was when "
                                "the job was accepted, since the machine was off: ",
                                name),
                   {{"name", name}});
}

}  // namespace

void ArrayPersister::BeginLoad(GlobalTransaction& transaction, const ContentPtr& content,
                               const std::shared_ptr<store::Buffer>& buffer,
                               const durable::ContentRow& row) {
  buffer->loading = true;
  auto task = MakePooled<Task>();
  task->tenant = buffer->tenant;
  task->label = "read from disk";
  task->options.host_access = true;
  task->uses.push_back({.buffer = buffer, .write = true, .fresh = true});
  scheduler_->Restore(transaction, task);
  scheduler_->Resume(transaction, task);
  loads_.push_back({content, buffer, task, row});
}

void ArrayPersister::RestoreLoads(GlobalTransaction& transaction) {
  std::map<uint64_t, std::pair<ContentPtr, std::shared_ptr<store::Buffer>>> unread;  // by file
  for (const auto& [key, content] : contents_) {
    auto buffer = content->buffer.lock();
    if (buffer == nullptr || buffer->kept == 0 || !buffer->error.ok()) continue;
    if (buffer->replicas.empty() && buffer->inline_bytes == nullptr)
      unread[buffer->kept] = {content, buffer};
  }
  for (const auto& [file, loaded] : unread) {
    const auto& [content, buffer] = loaded;
    auto row = rows_.contents.find(file);
    if (row != rows_.contents.end() && row->second.size == buffer->size)
      BeginLoad(transaction, content, buffer, row->second);
  }
}

void ArrayPersister::Reconcile(GlobalTransaction& transaction, bool with_jobs) {
  std::set<uint64_t> arrays;
  for (const auto& [buffer, content] : contents_) {
    for (const auto& [id, name] : content->names) arrays.insert(id);
  }
  durable::Change change;
  for (const auto& [id, row] : rows_.arrays) {
    if (arrays.count(id) == 0) change.erased_arrays.push_back(id);
  }
  for (const auto& [id, row] : rows_.jobs) {
    if (with_jobs && job_rows_.count(id) == 0) change.erased_jobs.push_back(id);
  }
  for (const auto& [id, row] : rows_.definitions) {
    const bool known = row.kind == durable::DefinitionRow::kFunction ||
                       row.kind == durable::DefinitionRow::kProgram;
    if (known && definition_rows_.count(id) == 0) change.erased_definitions.push_back(id);
  }
  if (!change.erased_arrays.empty() || !change.erased_jobs.empty() ||
      !change.erased_definitions.empty())
    store_->Queue(std::move(change));
}

bool ArrayPersister::Restored(GlobalTransaction& transaction, const std::string& session,
                              uint64_t row, bool begun) {
  if (row == 0 || rows_.jobs.count(row) == 0) return false;
  job_rows_.insert(row);
  if (HasEnded(transaction, row)) return true;
  std::string id = session.substr(session.find('/') + 1);
  KeptJob& job = jobs_[id];
  job.row = row;
  recovery::DurableJobRecord record;
  if (!record.ParseFromString(rows_.jobs[row].accepted)) return true;
  // Only the earlier daemon knew which arrays the job had used: perhaps all of them.
  for (const recovery::NamedArrayRecord& entry : record.arrays()) {
    auto name = session::ParseArrayName(entry.name(), "name");
    if (!name.ok()) continue;
    auto array =
        core_->catalogue.FindArray(transaction, TenantId{record.tenant()}, *name, core_->Now());
    if (!array.ok() || (*array)->durable != entry.row()) continue;
    ContentPtr content = Find((*array)->buffer.get());
    if (content == nullptr) continue;
    job.used.push_back(content);
    if (entry.made()) {
      if (content->names.size() == 1) content->made_by = id;
    } else if (begun) {
      content->users.insert(id);
      if (content->num_kept != content->num_changes) content->outdated.insert(id);
    }
  }
  return true;
}

bool ArrayPersister::HasEnded(GlobalTransaction& transaction, uint64_t row) const {
  auto found = rows_.jobs.find(row);
  return found != rows_.jobs.end() && !found->second.ended.empty();
}

// A job that runs again gives its results new rows; later jobs refer to the old ones.
void ArrayPersister::NoteRenamed(uint64_t row, const recovery::DurableJobRecord& now) {
  auto found = rows_.jobs.find(row);
  recovery::DurableJobRecord before;
  if (row == 0 || found == rows_.jobs.end() || !before.ParseFromString(found->second.accepted))
    return;
  for (const recovery::NamedArrayRecord& old_array : before.arrays()) {
    for (const recovery::NamedArrayRecord& array : now.arrays()) {
      bool same = old_array.made() && array.made() && array.name() == old_array.name();
      if (same && old_array.row() != 0) renamed_[old_array.row()] = array.row();
    }
  }
}

absl::Status ArrayPersister::PrepareRerun(GlobalTransaction& transaction, const TenantId& tenant,
                                          const recovery::DurableJobRecord& record) {
  for (const recovery::NamedArrayRecord& entry : record.arrays()) {
    auto name = session::ParseArrayName(entry.name(), "name");
    if (!name.ok()) return InputLost(entry.name());
    auto found = core_->catalogue.FindArray(transaction, tenant, *name, core_->Now());
    uint64_t there = found.ok() ? (*found)->durable : 0;
    if (entry.made()) continue;
    auto renamed = renamed_.find(entry.row());
    uint64_t wanted = renamed != renamed_.end() ? renamed->second : entry.row();
    if (wanted == 0 || there != wanted) return InputLost(entry.name());
  }
  for (const recovery::NamedArrayRecord& entry : record.arrays()) {
    auto name = session::ParseArrayName(entry.name(), "name");
    if (!entry.made() || !name.ok()) continue;
    auto found = core_->catalogue.FindArray(transaction, tenant, *name, core_->Now());
    if (found.ok() && entry.row() != 0 && (*found)->durable == entry.row())
      core_->catalogue.RemoveArray(transaction, tenant, *name, core_->Now()).IgnoreError();
  }
  return absl::OkStatus();
}

// --- reading ---

void ArrayPersister::ReadLoop() {
  std::vector<Load> loads;
  {
    GlobalTransaction transaction(*core_);
    loads = std::exchange(loads_, {});
  }
  SteadyTime begin = Now();
  size_t num_files = loads.size();
  int64_t bytes = 0;
  bool told = false;
  while (!loads.empty()) {
    std::vector<Load> again;
    for (Load& load : loads) {
      {
        absl::MutexLock lock(&mutex_);
        if (stopping_) return;
      }
      absl::Status status = ReadFile(load);
      bool later = !status.ok() && !absl::IsDataLoss(status);
      if (later && !std::exchange(told, true)) {
        core_->options.log(
            absl::StrCat("an array on disk finds no place in memory yet; it is tried again: ",
                         status.message()));
      }
      if (later) {
        again.push_back(std::move(load));
      } else {
        if (status.ok()) bytes += load.row.size;
        EndLoad(load, status);
      }
    }
    loads = std::move(again);
    if (loads.empty()) break;
    absl::MutexLock lock(&mutex_);
    if (stride::Await(mutex_, absl::Condition(&stopping_), Now() + kRetry)) return;
  }
  if (num_files > 0) {
    core_->options.log(absl::StrCat("read from disk: ", bytes, " bytes of ", num_files,
                                    " arrays' files in ", absl::FormatDuration(Now() - begin)));
  }
}

int ArrayPersister::DeviceFor(GlobalTransaction& transaction, const std::string& wanted) {
  int device = core_->spaces.FindDevice(wanted);
  if (device >= 0) return device;
  Memory& memory = scheduler_->memory().arenas();
  auto room = [&](int index) {
    return static_cast<int64_t>(memory.limit_bytes(index)) -
           static_cast<int64_t>(memory.arena_bytes(transaction, index));
  };
  device = 0;
  for (size_t i = 1; i < core_->broker->devices().size(); ++i) {
    if (room(static_cast<int>(i)) > room(device)) device = static_cast<int>(i);
  }
  return device;
}

absl::Status ArrayPersister::ReadFile(const Load& load) {
  auto reader = store_->Read(load.row);
  if (!reader.ok()) return reader.status();
  DeviceQueue* queue = nullptr;
  int device = 0;
  {
    GlobalTransaction transaction(*core_);
    device =
        scheduler_->memory().HomeOf(load.buffer->size, DeviceFor(transaction, load.row.device));
    queue = &scheduler_->queues().Get(transaction, load.buffer->tenant, device);
  }
  auto target = scheduler_->memory().BlockingAllocate(*queue, load.row.size);
  if (!target.ok()) return target.status();
  absl::Status status;
  {
    ArrayWriter writer(core_, scheduler_);
    status = writer.Open(*queue, *target, 0, Now() + kWritePatience);
    std::unique_ptr<char[]> buffer(new char[kChunk]);
    while (status.ok()) {
      auto count = (*reader)->Read(buffer.get(), kChunk);
      status = count.status();
      if (!status.ok() || *count == 0) break;
      status = writer.Write({buffer.get(), *count});
    }
    absl::Status finished = writer.Finish();
    if (status.ok()) status = finished;
  }
  GlobalTransaction transaction(*core_);
  // The buffer takes the block also after an error: dropping the replica then frees it.
  load.buffer->AddReplica(device, *target);
  if (!status.ok()) load.buffer->DropReplica(device);
  return status;
}

void ArrayPersister::EndLoad(const Load& load, const absl::Status& status) {
  GlobalTransaction transaction(*core_);
  if (!status.ok()) {
    load.content->damaged = true;
    for (const auto& [id, name] : load.content->names) {
      auto array = name.array.lock();
      core_->options.log(absl::StrCat(
          "AN ARRAY IS DAMAGED ON DISK: ", array != nullptr ? array->name.ToString() : "", ": ",
          status.message()));
    }
    load.buffer->Spoil(DataLost(status.message()));
  }
  // Finish while `loading` is set: this end changes nothing that is on disk.
  scheduler_->Complete(transaction, load.task, load.buffer->error);
  load.buffer->loading = false;
  if (load.content->rows_changed) Due(load.content, core_->Now());
}

}  // namespace stride::engine
