#include "server/engine/arrays/array_persister.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/record_convert.h"
#include "server/engine/persistence/state_codec.h"
#include "server/engine/transfers/buffer_source.h"
#include "server/recovery/records.pb.h"

namespace stride::engine {
namespace {

// An array that keeps changing is written once in this many times of what one writing takes, and
// not more often than the second says.
constexpr int kRest = 10;
constexpr absl::Duration kLeastRest = absl::Seconds(1);
constexpr absl::Duration kFailureRest = absl::Milliseconds(100);
constexpr int64_t kChunk = int64_t{4} << 20;
// A device that does not give an array's bytes for so long will not.
constexpr absl::Duration kReadPatience = absl::Minutes(10);
// A call whose change is on no disk by then is answered all the same.
constexpr absl::Duration kCommitPatience = absl::Seconds(5);

std::string SessionId(const std::string& name) {
  return std::string(absl::StripPrefix(name, "sessions/"));
}

}  // namespace

// One array's way to its file.
struct ArrayPersister::Writing {
  ContentPtr content;
  std::shared_ptr<store::Buffer> buffer;
  std::shared_ptr<ReadAccess> access;
  uint64_t version = 0;  // the number of changes it has
  std::set<std::string> outdated;
  durable::ContentRow row;
  SteadyTime begin;
};

ArrayPersister::ArrayPersister(Core* core, Scheduler* scheduler, durable::DurableStore* store)
    : core_(core), scheduler_(scheduler), store_(store), rows_(store->TakeRows()) {}

ArrayPersister::~ArrayPersister() { Stop(); }

void ArrayPersister::Start() {
  {
    GlobalTransaction transaction(*core_);
    rows_ = {};
    job_rows_.clear();
    definition_rows_.clear();
    renamed_.clear();
  }
  durable::Change change;
  change.restored = true;
  store_->Queue(std::move(change));
  writer_ = std::thread([this] { WriteLoop(); });
  reader_ = std::thread([this] { ReadLoop(); });
}

void ArrayPersister::Stop() {
  {
    GlobalTransaction transaction(*core_);
    stopped_ = true;
  }
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (writer_.joinable()) writer_.join();
  if (reader_.joinable()) reader_.join();
  store_->Close();  // its callbacks lead here
  absl::MutexLock lock(&mutex_);
  due_.clear();
}

ArrayPersister::ContentPtr ArrayPersister::Find(const store::Buffer* buffer) const {
  auto found = contents_.find(buffer);
  return found == contents_.end() ? nullptr : found->second;
}

void ArrayPersister::Added(TenantTransaction& transaction,
                           const std::shared_ptr<session::Array>& array) {
  if (stopped_ || array->buffer == nullptr || !array->name.is_named()) return;
  if (array->durable == 0) array->durable = store_->NewId();
  if (array->durable == 0) return;
  store::Buffer& buffer = *array->buffer;
  ContentPtr& content = contents_[&buffer];
  if (content == nullptr) {
    content = std::make_shared<Content>();
    content->buffer = array->buffer;
    content->num_changes = 1;
    auto row = rows_.contents.find(buffer.kept);
    if (row == rows_.contents.end()) {
      buffer.SetKept(0);
    } else {
      content->num_kept = 1;
      content->file = row->first;
      content->file_bytes = row->second.size;
    }
  }
  auto row = rows_.arrays.find(array->durable);
  bool on_disk = row != rows_.arrays.end();
  content->names[array->durable] = {array, on_disk};
  bool current = on_disk && content->file != 0 && row->second.content == content->file;
  content->rows_changed = content->rows_changed || !current;
  if (!current || content->num_kept != content->num_changes) Due(content, core_->Now());
}

void ArrayPersister::Removed(TenantTransaction& transaction, session::Array& array) {
  if (stopped_ || array.durable == 0 || array.buffer == nullptr) return;
  ContentPtr content = Find(array.buffer.get());
  if (content == nullptr) return;
  auto name = content->names.find(array.durable);
  if (name == content->names.end()) return;
  durable::Change change;
  if (name->second.on_disk) change.erased_arrays.push_back(array.durable);
  content->names.erase(name);
  if (content->names.empty()) {
    array.buffer->SetKept(0);
    contents_.erase(array.buffer.get());
    AddEnds(&change);  // ends of jobs that waited for the array
  }
  if (!change.erased_arrays.empty() || !change.ended_jobs.empty()) store_->Queue(std::move(change));
}

void ArrayPersister::Changed(TenantTransaction& transaction, const session::Array& array) {
  if (stopped_ || array.buffer == nullptr) return;
  ContentPtr content = Find(array.buffer.get());
  if (content == nullptr) return;
  content->rows_changed = true;
  Due(content, core_->Now());
}

void ArrayPersister::Enqueued(TenantTransaction& transaction, const Task& task) {
  if (stopped_) return;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr && use.write && !use.buffer->loading) use.buffer->SetKept(0);
  }
}

void ArrayPersister::Ended(TenantTransaction& transaction, const Task& task, bool begun) {
  if (stopped_ || contents_.empty() || task.options.drop_other_replicas) return;
  const std::string session = task.session != nullptr ? task.session->id : "";
  auto job = jobs_.find(session);
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr || !use.write || use.buffer->loading) continue;
    bool untouched = !task.result.ok() && !begun && !use.fresh;
    ContentPtr content = untouched ? nullptr : Find(use.buffer.get());
    if (content == nullptr) continue;
    ++content->num_changes;
    content->outdated.insert(content->users.begin(), content->users.end());
    if (job != jobs_.end() && !use.fresh) content->outdated.insert(session);
    // The job makes the array again whenever it runs again.
    content->outdated.erase(content->made_by);
    Due(content, core_->Now());
  }
  if (job == jobs_.end()) return;
  for (const Use& use : task.uses) {
    ContentPtr content = use.buffer != nullptr ? Find(use.buffer.get()) : nullptr;
    if (content != nullptr && content->users.insert(session).second)
      job->second.used.push_back(content);
  }
}

uint64_t ArrayPersister::Accepted(GlobalTransaction& transaction, const std::string& session,
                                  uint64_t row, recovery::DurableJobRecord record,
                                  uint64_t* number) {
  *number = 0;
  if (stopped_) return 0;
  const uint64_t before = row;  // of a job that runs again
  if (row == 0) row = store_->NewId();
  if (row == 0) return 0;
  job_rows_.insert(row);
  KeptJob& job = jobs_[SessionId(session)];
  job.row = row;
  for (recovery::NamedArrayRecord& entry : *record.mutable_arrays()) {
    auto array =
        core_->catalogue.FindArray(transaction, TenantId{record.tenant()},
                                   *session::ParseArrayName(entry.name(), "name"), core_->Now());
    entry.set_row(array.ok() ? (*array)->durable : 0);
    ContentPtr content = array.ok() ? Find((*array)->buffer.get()) : nullptr;
    bool fresh = content != nullptr && content->names.size() == 1 && content->num_kept == 0;
    if (!entry.made() || !fresh) continue;
    content->made_by = SessionId(session);
    job.used.push_back(content);
  }
  NoteRenamed(before, record);
  durable::Change change;
  change.jobs.push_back({.id = row, .accepted = record.SerializeAsString()});
  *number = store_->Queue(std::move(change));
  return row;
}

uint64_t ArrayPersister::CancelRequested(GlobalTransaction& transaction, uint64_t row) {
  if (stopped_ || row == 0) return 0;
  durable::Change change;
  change.cancelled_jobs.push_back(row);
  return store_->Queue(std::move(change));
}

void ArrayPersister::JobEnded(GlobalTransaction& transaction, const std::string& session,
                              uint64_t row, std::string end,
                              const std::vector<std::shared_ptr<session::Array>>& named_results) {
  if (stopped_ || row == 0) return;
  std::string id = SessionId(session);
  KeptJob& kept = jobs_[id];
  kept.row = row;
  kept.ended = true;
  kept.end = std::move(end);
  for (const auto& array : named_results) {
    ContentPtr content = Find(array->buffer.get());  // null: it is not a tenant's, or is gone
    if (content != nullptr) kept.awaited.emplace_back(content, content->num_changes);
  }
  ended_.insert(id);
  durable::Change change;
  AddEnds(&change);
  if (!change.ended_jobs.empty()) store_->Queue(std::move(change));
}

void ArrayPersister::Forgotten(GlobalTransaction& transaction, const std::string& session,
                               uint64_t row) {
  if (stopped_ || row == 0) return;
  auto job = jobs_.find(SessionId(session));
  if (job != jobs_.end()) {
    LetGo(job->second, job->first);
    ended_.erase(job->first);
    jobs_.erase(job);
  }
  durable::Change change;
  change.erased_jobs.push_back(row);
  store_->Queue(std::move(change));
}

void ArrayPersister::LetGo(KeptJob& job, const std::string& session) {
  for (const auto& weak : job.used) {
    ContentPtr content = weak.lock();
    if (content == nullptr) continue;
    content->users.erase(session);
    content->outdated.erase(session);
    if (content->made_by == session) content->made_by.clear();
  }
}

// Jobs whose results are all on disk once `change` and what was queued before it are.
void ArrayPersister::AddEnds(durable::Change* change) {
  for (auto it = ended_.begin(); it != ended_.end();) {
    auto job = jobs_.find(*it);
    bool waits = std::any_of(
        job->second.awaited.begin(), job->second.awaited.end(), [](const auto& awaited) {
          ContentPtr content = awaited.first.lock();
          return content != nullptr && !content->names.empty() && !content->no_room &&
                 !content->damaged && content->num_kept < awaited.second;
        });
    if (waits) {
      ++it;
      continue;
    }
    change->ended_jobs.emplace_back(job->second.row, std::move(job->second.end));
    LetGo(job->second, job->first);
    jobs_.erase(job);
    it = ended_.erase(it);
  }
}

uint64_t ArrayPersister::Defined(TenantTransaction& transaction, durable::DefinitionRow::Kind kind,
                                 const google::protobuf::MessageLite& record, uint64_t* number) {
  *number = 0;
  if (stopped_) return 0;
  const uint64_t row = store_->NewId();
  if (row == 0) return 0;
  durable::Change change;
  change.definitions.push_back({row, kind, record.SerializeAsString()});
  *number = store_->Queue(std::move(change));
  return row;
}

uint64_t ArrayPersister::Undefined(TenantTransaction& transaction, uint64_t row) {
  if (stopped_ || row == 0) return 0;
  durable::Change change;
  change.erased_definitions.push_back(row);
  return store_->Queue(std::move(change));
}

void ArrayPersister::Await(uint64_t number) const {
  if (store_->Await(number, Now() + kCommitPatience)) return;
  int64_t now = absl::ToInt64Seconds(core_->Now().since_boot());
  int64_t before = not_written_told_.load();
  if (now < before + 60 || !not_written_told_.compare_exchange_strong(before, now)) return;
  core_->options.log(
      "a job or a deletion was answered before it was on disk: a reboot may undo it");
}

void ArrayPersister::Flush(SteadyTime deadline) {
  {
    absl::MutexLock lock(&mutex_);
    hurry_ = true;
    auto written = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || (due_.empty() && !writing_);
    };
    if (!stride::Await(mutex_, absl::Condition(&written), deadline))
      core_->options.log("some arrays were not on disk when the time to stop had come");
    hurry_ = false;
  }
  store_->Await(store_->last(), deadline);
}

// --- writing ---

void ArrayPersister::Due(const ContentPtr& content, SteadyTime when) {
  if (std::exchange(content->due, true)) return;
  // Rows alone need no rest: another name for what is on disk already.
  bool only_rows = content->num_kept == content->num_changes;
  absl::MutexLock lock(&mutex_);
  due_.emplace(only_rows ? when : std::max(when, content->next_write), content);
}

ArrayPersister::ContentPtr ArrayPersister::NextDue() {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  auto first_is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || (!due_.empty() && (hurry_ || due_.begin()->first <= core_->Now()));
  };
  while (!first_is_due()) {
    absl::Duration rest = due_.empty() ? kLeastRest : due_.begin()->first - core_->Now();
    stride::Await(mutex_, absl::Condition(&first_is_due), Now() + std::min(rest, kLeastRest));
    if (!first_is_due()) return nullptr;
  }
  if (stopping_) return nullptr;
  ContentPtr content = std::move(due_.begin()->second);
  due_.erase(due_.begin());
  writing_ = true;
  return content;
}

void ArrayPersister::WriteLoop() {
  for (;;) {
    ContentPtr content = NextDue();
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    if (content == nullptr) {
      TryNoRoomAgain();
    } else {
      Write(content);
    }
  }
}

void ArrayPersister::Write(const ContentPtr& content) {
  Writing writing;
  if (!BeginWrite(content, &writing)) return;
  absl::Status status = CopyToFile(&writing);
  EndWrite(writing, status);
  // Also when nothing waits for its time.
  if (!status.ok()) absl::SleepFor(kFailureRest);
}

durable::ArrayRow ArrayPersister::RowOf(const session::Array& array, uint64_t content) const {
  recovery::ArrayRecord record;
  ToRecord(array, core_->spaces, Outlives::kMachine, &record);
  return {array.durable, content, record.SerializeAsString()};
}

void ArrayPersister::AddRows(Content& content, uint64_t file, durable::Change* change) const {
  for (auto& [id, name] : content.names) {
    auto array = name.array.lock();
    if (array == nullptr) continue;
    change->arrays.push_back(RowOf(*array, file));
    name.on_disk = true;
  }
  content.rows_changed = false;
}

// Its arrays come back as ones that have failed, not as what they were before.
void ArrayPersister::Failed(Content& content, store::Buffer& buffer) {
  durable::Change change;
  AddRows(content, 0, &change);
  content.num_kept = content.num_changes;
  content.file = content.file_bytes = 0;
  buffer.SetKept(0);
  change.changed_kept_jobs = RowsOf(std::exchange(content.outdated, {}));
  AddEnds(&change);
  store_->Queue(std::move(change));
}

void ArrayPersister::NoRoom(const ContentPtr& content, const store::Buffer& buffer) {
  durable::Change change;
  if (!std::exchange(content->no_room, true)) {
    no_room_.push_back(content);
    auto array = content->names.begin()->second.array.lock();
    core_->options.log(
        absl::StrCat("an array is not kept on disk, since --durable-bytes does not allow it; a "
                     "reboot loses it: ",
                     array != nullptr ? array->name.ToString() : "", " (", buffer.size, " bytes; ",
                     store_->used_bytes(), " of ", store_->max_bytes(), " are used)"));
  }
  // Rather nothing than what it was once.
  for (auto& [id, name] : content->names) {
    if (std::exchange(name.on_disk, false)) change.erased_arrays.push_back(id);
  }
  content->file = content->file_bytes = 0;
  content->rows_changed = true;
  AddEnds(&change);
  if (!change.erased_arrays.empty() || !change.ended_jobs.empty()) store_->Queue(std::move(change));
}

void ArrayPersister::TryNoRoomAgain() {
  GlobalTransaction transaction(*core_);
  auto all = std::exchange(no_room_, {});
  for (const auto& weak : all) {
    ContentPtr content = weak.lock();
    auto buffer = content != nullptr ? content->buffer.lock() : nullptr;
    if (buffer == nullptr || content->names.empty() || !content->no_room) continue;
    if (store_->used_bytes() + buffer->size <= store_->max_bytes()) {
      content->no_room = false;
      Due(content, core_->Now());
    } else {
      no_room_.push_back(content);
    }
  }
}

bool ArrayPersister::BeginWrite(const ContentPtr& content, Writing* writing) {
  GlobalTransaction transaction(*core_);
  content->due = false;
  auto buffer = content->buffer.lock();
  if (stopped_ || buffer == nullptr || content->names.empty() || content->damaged) return false;
  // EndLoad, or Ended of the writer, makes the write due again.
  if (buffer->loading || buffer->writer != nullptr) return false;
  if (!buffer->error.ok()) {
    Failed(*content, *buffer);
    return false;
  }
  if (content->num_kept == content->num_changes && content->file != 0) {
    durable::Change change;
    if (content->rows_changed) AddRows(*content, content->file, &change);
    AddEnds(&change);
    if (!change.arrays.empty() || !change.ended_jobs.empty()) store_->Queue(std::move(change));
    return false;
  }
  bool there = buffer->size == 0 || !buffer->replicas.empty() || buffer->inline_bytes != nullptr;
  if (!there) return false;
  if (!store_->Reserve(buffer->size, content->file_bytes)) {
    buffer->SetKept(0);
    NoRoom(content, *buffer);
    return false;
  }
  content->no_room = false;
  auto whole = MakePooled<session::Array>();
  whole->info = Contiguous(DType::kUInt8, {buffer->size});
  whole->buffer = buffer;
  auto access = ReadAccess::Enqueue(transaction, core_, scheduler_, nullptr, buffer->tenant, whole);
  uint64_t file = store_->NewId();
  if (!access.ok() || file == 0) {  // the tenant's queue is full
    store_->Release(buffer->size);
    content->next_write = core_->Now() + kLeastRest;
    Due(content, content->next_write);
    if (access.ok()) transaction.Defer([access = *std::move(access)] {});
    return false;
  }
  *writing = {.content = content,
              .buffer = buffer,
              .access = *std::move(access),
              .version = content->num_changes,
              .outdated = std::exchange(content->outdated, {}),
              .row = {.id = file, .size = buffer->size},
              .begin = core_->Now()};
  for (const auto& [place, replica] : buffer->replicas) {
    if (core_->IsDevice(place)) writing->row.device = core_->broker->devices()[place].id();
  }
  return true;
}

absl::Status ArrayPersister::CopyToFile(Writing* writing) {
  SteadyTime deadline = Now() + kReadPatience;
  // Dropped before the file is synchronized, so that a change waits only for the copy.
  auto download = std::make_unique<Download>(
      writing->row.size,
      std::make_unique<BufferSource>(core_, scheduler_, std::move(writing->access),
                                     Bytes{0, writing->row.size}));
  if (absl::Status status = download->Await(deadline); !status.ok()) return status;
  auto file = store_->Write(writing->row.id);
  if (!file.ok()) return file.status();
  for (;;) {
    auto chunk = download->Next(kChunk);
    if (!chunk.ok()) return chunk.status();
    if (chunk->bytes.empty()) break;
    if (absl::Status status = (*file)->Write(chunk->bytes); !status.ok()) return status;
  }
  download.reset();
  writing->row.crc = (*file)->crc();
  return (*file)->Finish();
}

void ArrayPersister::EndWrite(Writing& writing, const absl::Status& status) {
  GlobalTransaction transaction(*core_);
  Content& content = *writing.content;
  absl::Duration rest = std::max(kLeastRest, (core_->Now() - writing.begin) * kRest);
  content.next_write = core_->Now() + rest;
  if (!status.ok() || stopped_ || content.names.empty()) {
    store_->Release(writing.row.size);
    if (status.ok()) store_->Remove(writing.row.id);
    content.outdated.insert(writing.outdated.begin(), writing.outdated.end());
    if (stopped_ || content.names.empty()) return;
    if (core_->Now() > write_failure_told_ + absl::Minutes(1)) {
      write_failure_told_ = core_->Now();
      core_->options.log(absl::StrCat("an array could not be written to disk; it is tried again: ",
                                      status.message()));
    }
    Due(writing.content, content.next_write);
    return;
  }
  store_->Adopt(writing.row.id, writing.row.size);
  durable::Change change;
  change.contents.push_back(writing.row);
  AddRows(content, writing.row.id, &change);
  change.changed_kept_jobs = RowsOf(writing.outdated);
  content.file = writing.row.id;
  content.file_bytes = writing.row.size;
  content.num_kept = writing.version;
  AddEnds(&change);
  change.done = [this, content = writing.content, file = writing.row.id,
                 version = writing.version](bool committed) {
    if (!committed) return;
    GlobalTransaction transaction(*core_);
    auto buffer = content->buffer.lock();
    bool current = !stopped_ && buffer != nullptr && content->file == file &&
                   content->num_changes == version && !content->names.empty() &&
                   buffer->writer == nullptr;
    if (current) buffer->SetKept(file);
  };
  store_->Queue(std::move(change));
  if (content.num_changes != content.num_kept) Due(writing.content, content.next_write);
}

std::vector<uint64_t> ArrayPersister::RowsOf(const std::set<std::string>& sessions) const {
  std::vector<uint64_t> rows;
  for (const std::string& session : sessions) {
    auto job = jobs_.find(session);
    if (job != jobs_.end() && job->second.row != 0) rows.push_back(job->second.row);
  }
  return rows;
}

}  // namespace stride::engine
