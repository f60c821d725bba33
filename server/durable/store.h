#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/folder.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"
#include "server/durable/content_file.h"
#include "server/durable/database.h"
#include "server/durable/rows.h"

namespace stride::durable {

// The folder of arrays' files, in the store's folder.
inline constexpr char kFilesFolder[] = "arrays";

struct StoreOptions {
  std::string folder;     // created if absent; no link below it is followed (base/folder.h)
  int64_t max_bytes = 0;  // limit of all arrays' files
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

// Named arrays and jobs on disk, which survive a power cut. Rows are in a database, and each
// array's bytes are in a file, which is first written under another name. The file belongs to the
// array once the array's row references it; the same transaction holds every change that must agree
// with it.
//
// The store's own thread commits rows, all waiting ones at once. It logs a full or lost disk once
// and retries the pending writes every second.
//
// Thread-safe.
class DurableStore {
 public:
  // FAILED_PRECONDITION when another process has the folder. A damaged database and its files are
  // renamed and a new database is created; that is no error.
  static absl::StatusOr<std::unique_ptr<DurableStore>> Open(StoreOptions options);
  // Calls Close.
  ~DurableStore();

  // Rows found at the start. Call once.
  Rows TakeRows() { return std::move(rows_); }

  // An id that neither this process nor an earlier one has used; 0 when none can be reserved.
  uint64_t NewId() ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a change; changes are written in the order of these calls. Never blocks. Returns the
  // number for Await; 0: the queue is full, the change is refused and `done` is not called.
  uint64_t Queue(Change change) ABSL_LOCKS_EXCLUDED(mutex_);
  // True once the change is on disk; false when the disk fails or at the deadline.
  bool Await(uint64_t number, SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of the latest Queue call.
  uint64_t last() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Reserves room for a file that replaces one of `replaced` bytes; false: it would exceed
  // max_bytes. Released by Release, or when the content's row is erased.
  bool Reserve(int64_t bytes, int64_t replaced = 0) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes over the reserved bytes of a content that a Change is about to reference; they count
  // until its row is erased.
  void Adopt(uint64_t content, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t max_bytes() const { return options_.max_bytes; }

  absl::StatusOr<std::unique_ptr<ContentWriter>> Write(uint64_t content) {
    return ContentWriter::Create(files_, content);
  }
  absl::StatusOr<std::unique_ptr<ContentReader>> Read(const ContentRow& row) {
    return ContentReader::Open(*files_, row);
  }
  void Remove(uint64_t content);

  // Tries once more to write pending changes; later changes are refused.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  DurableStore(StoreOptions options, Folder folder);
  absl::Status OpenFiles();
  absl::Status Lock();
  absl::Status OpenDatabase();
  void SetAside(const absl::Status& why);
  void RemoveOrphans();
  void Loop();
  void Commit(std::vector<Change>& changes);

  const StoreOptions options_;
  const Folder folder_;
  std::shared_ptr<const Folder> files_;  // set by OpenFiles
  UniqueFd lock_;
  Rows rows_;
  std::unique_ptr<Database> database_;  // used only by thread_ once it runs
  std::thread thread_;

  mutable absl::Mutex mutex_;
  std::vector<Change> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;     // number of changes accepted so far
  uint64_t committed_ ABSL_GUARDED_BY(mutex_) = 0;  // number of changes on disk
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0, end_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, int64_t> sizes_ ABSL_GUARDED_BY(mutex_);  // bytes by content id
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace stride::durable
