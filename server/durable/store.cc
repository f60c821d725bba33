#include "server/durable/store.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/durable/folder_lock.h"

namespace stride::durable {
namespace {

// More ids than any process uses.
constexpr uint64_t kIdsOfAProcess = uint64_t{1} << 40;
// Bytes of changes that may wait while the disk accepts none.
constexpr int64_t kMaxQueuedBytes = int64_t{256} << 20;
// After so many daemons in a row that died while reading one database, the database is at fault.
constexpr uint64_t kMaxAttempts = 10;
constexpr absl::Duration kRetry = absl::Seconds(1);

int64_t BytesOf(const Change& change) {
  int64_t bytes = 0;
  for (const JobRow& row : change.jobs) bytes += static_cast<int64_t>(row.accepted.size());
  for (const auto& [id, ended] : change.ended_jobs) bytes += static_cast<int64_t>(ended.size());
  for (const DefinitionRow& row : change.definitions)
    bytes += static_cast<int64_t>(row.record.size());
  for (const ArrayRow& row : change.arrays) bytes += static_cast<int64_t>(row.record.size());
  return bytes;
}

}  // namespace

DurableStore::DurableStore(StoreOptions options, Folder folder)
    : options_(std::move(options)), folder_(std::move(folder)) {}

absl::StatusOr<std::unique_ptr<DurableStore>> DurableStore::Open(StoreOptions options) {
  auto folder = Folder::MakeIn(options.folder);
  if (!folder.ok()) return folder.status();
  std::unique_ptr<DurableStore> store(new DurableStore(std::move(options), *std::move(folder)));
  if (absl::Status status = store->Lock(); !status.ok()) return status;
  if (absl::Status status = store->OpenFiles(); !status.ok()) return status;
  absl::Status opened = store->OpenDatabase();
  if (absl::IsDataLoss(opened)) {
    store->SetAside(opened);
    if (absl::Status status = store->OpenFiles(); !status.ok()) return status;
    opened = store->OpenDatabase();
  }
  if (!opened.ok()) return opened;
  store->RemoveOrphans();
  store->thread_ = std::thread([store = store.get()] { store->Loop(); });
  return store;
}

absl::Status DurableStore::OpenFiles() {
  auto files = folder_.Make(kFilesFolder);
  if (!files.ok()) return files.status();
  files_ = std::make_shared<const Folder>(*std::move(files));
  return absl::OkStatus();
}

absl::Status DurableStore::Lock() {
  auto lock = LockFolder(folder_, "lock");
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  return absl::OkStatus();
}

absl::Status DurableStore::OpenDatabase() {
  auto database = Database::Open(folder_);
  if (!database.ok()) return database.status();
  auto attempts = (*database)->CountAttempt();
  if (!attempts.ok()) return attempts.status();
  if (*attempts > kMaxAttempts) return absl::DataLossError("no daemon survived reading it");
  std::vector<std::string> damage;
  auto rows = (*database)->Read(&damage);
  if (!rows.ok()) return rows.status();
  auto first = (*database)->TakeIds(kIdsOfAProcess);
  if (!first.ok()) return first.status();
  for (const std::string& line : damage)
    options_.log(absl::StrCat("damaged on disk and given up: ", line));
  rows_ = *std::move(rows);
  database_ = *std::move(database);
  absl::MutexLock lock(&mutex_);
  next_id_ = *first;
  end_id_ = *first + kIdsOfAProcess;
  for (const auto& [id, row] : rows_.contents) {
    sizes_[id] = row.size;
    used_bytes_ += row.size;
  }
  return absl::OkStatus();
}

void DurableStore::SetAside(const absl::Status& why) {
  std::string name = absl::StrCat("damaged-", absl::ToUnixSeconds(WallNow()));
  options_.log(absl::StrCat(
      "THE DATABASE OF ARRAYS AND JOBS IS DAMAGED and was set aside, with its files, as ", name,
      " in the state folder; what it kept is lost to this daemon: ", why.message()));
  auto aside = folder_.Make(name);
  if (!aside.ok()) return;
  for (const char* file : {"rows.db", "rows.db-wal", "rows.db-shm", kFilesFolder})
    folder_.Rename(file, *aside, file).IgnoreError();
}

// Removes files that were written by a daemon that ended before their rows were committed.
void DurableStore::RemoveOrphans() {
  int removed = 0;
  auto names = files_->List();
  if (!names.ok()) return;
  // Files with other names do not belong to the store.
  for (const std::string& name : *names) {
    const uint64_t id = ContentOfFileName(name);
    const bool orphan = id != 0 ? rows_.contents.count(id) == 0 : IsUnfinishedContent(name);
    if (orphan && files_->Remove(name)) ++removed;
  }
  if (removed > 0)
    options_.log(absl::StrCat("removed ", removed, " files of arrays that were never complete"));
}

DurableStore::~DurableStore() { Close(); }

void DurableStore::Close() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

uint64_t DurableStore::NewId() {
  absl::MutexLock lock(&mutex_);
  return next_id_ < end_id_ ? next_id_++ : 0;
}

uint64_t DurableStore::Queue(Change change) {
  int64_t bytes = BytesOf(change);
  absl::MutexLock lock(&mutex_);
  bool too_much = !change.jobs.empty() && queued_bytes_ + bytes > kMaxQueuedBytes;
  if (closing_ || too_much) return 0;
  queued_bytes_ += bytes;
  queue_.push_back(std::move(change));
  return ++queued_;
}

bool DurableStore::Await(uint64_t number, SteadyTime deadline) {
  if (number == 0) return false;
  absl::MutexLock lock(&mutex_);
  auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return committed_ >= number || failing_ || closing_;
  };
  stride::Await(mutex_, absl::Condition(&known), deadline);
  return committed_ >= number;
}

uint64_t DurableStore::last() const {
  absl::MutexLock lock(&mutex_);
  return queued_;
}

bool DurableStore::Reserve(int64_t bytes, int64_t replaced) {
  absl::MutexLock lock(&mutex_);
  if (used_bytes_ + bytes - replaced > options_.max_bytes) return false;
  used_bytes_ += bytes;
  return true;
}

void DurableStore::Release(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  used_bytes_ -= bytes;
}

void DurableStore::Adopt(uint64_t content, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  sizes_[content] = bytes;
}

int64_t DurableStore::used_bytes() const {
  absl::MutexLock lock(&mutex_);
  return used_bytes_;
}

void DurableStore::Remove(uint64_t content) {
  files_->Remove(ContentFileName(content));
  absl::MutexLock lock(&mutex_);
  auto found = sizes_.find(content);
  if (found == sizes_.end()) return;
  used_bytes_ -= found->second;
  sizes_.erase(found);
}

void DurableStore::Loop() {
  std::vector<Change> changes;  // changes that wait for the disk
  for (;;) {
    bool last = false;
    {
      absl::MutexLock lock(&mutex_);
      auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closing_ || (!queue_.empty() && !failing_);
      };
      if (failing_) {
        stride::Await(mutex_, absl::Condition(&closing_), Now() + kRetry);
      } else {
        mutex_.Await(absl::Condition(&wanted));
      }
      last = closing_;
      changes.insert(changes.end(), std::make_move_iterator(queue_.begin()),
                     std::make_move_iterator(queue_.end()));
      queue_.clear();
    }
    if (!changes.empty()) Commit(changes);
    if (last) break;
  }
  if (!changes.empty()) {
    options_.log(absl::StrCat(changes.size(), " changes of arrays and jobs were never written"));
    for (Change& change : changes) {
      if (change.done) change.done(false);
    }
  }
}

// Empties `changes` once they are on disk.
void DurableStore::Commit(std::vector<Change>& changes) {
  std::vector<uint64_t> unused;
  STRIDE_CRASH_POINT("durable.before_commit");
  absl::Status status = database_->Apply(changes, &unused);
  bool was_failing;
  {
    absl::MutexLock lock(&mutex_);
    was_failing = std::exchange(failing_, !status.ok());
    if (status.ok()) {
      committed_ += changes.size();
      for (const Change& change : changes) queued_bytes_ -= BytesOf(change);
    }
  }
  if (!status.ok()) {
    if (!was_failing) {
      options_.log(absl::StrCat(
          "arrays and jobs cannot be written to disk; a reboot now would lose them. It is tried "
          "again: ",
          status.message()));
    }
    return;
  }
  STRIDE_CRASH_POINT("durable.after_commit");
  if (was_failing) options_.log("arrays and jobs are written to disk again");
  for (uint64_t content : unused) Remove(content);
  for (Change& change : changes) {
    if (change.done) change.done(true);
  }
  changes.clear();
}

}  // namespace stride::durable
