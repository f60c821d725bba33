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
  std::string folder;     // is made; no link below it is followed (base/folder.h)
  int64_t max_bytes = 0;  // of arrays' files
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

// Named arrays and jobs on disk: what is there after the machine was off. Rows are in a database,
// arrays' bytes in a file each, written under another name first; a file belongs to an array once
// its row says so, in one transaction with whatever must be true at the same time.
//
// One thread of its own commits rows, all that wait at once. A disk that is full or gone is told
// once; what could not be written waits, and is tried again every second.
//
// Thread-safe.
class DurableStore {
 public:
  // FAILED_PRECONDITION when another process has the folder. A damaged database is set aside under
  // another name, with its files, and a fresh one begun: that is no error.
  static absl::StatusOr<std::unique_ptr<DurableStore>> Open(StoreOptions options);
  // Close first, if what waits is to be written.
  ~DurableStore();

  // What was found; once.
  Rows TakeRows() { return std::move(rows_); }

  // Never given before, by this process or an earlier one; 0 when no more can be had.
  uint64_t NewId() ABSL_LOCKS_EXCLUDED(mutex_);

  // To be written in the order of these calls. Does not block. The number is for Await; 0: so much
  // waits for the disk that a job is no longer taken, and `done` is not called.
  uint64_t Queue(Change change) ABSL_LOCKS_EXCLUDED(mutex_);
  // True once it is on disk; false when the disk fails or at the deadline.
  bool Await(uint64_t number, SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of the last call of Queue.
  uint64_t last() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Room for a file in the place of one of `replaced` bytes; false: it would be more than may be
  // kept. Given back by Release, or when the content's row goes.
  bool Reserve(int64_t bytes, int64_t replaced = 0) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // A reserved content that a Change is about to name: counted until its row goes.
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

  // Tries once more to write what waits; nothing is taken afterwards.
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
  std::shared_ptr<const Folder> files_;  // there once it is open
  UniqueFd lock_;
  Rows rows_;
  std::unique_ptr<Database> database_;  // the thread's, once it runs
  std::thread thread_;

  mutable absl::Mutex mutex_;
  std::vector<Change> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;     // changes taken
  uint64_t committed_ ABSL_GUARDED_BY(mutex_) = 0;  // of these
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0, end_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, int64_t> sizes_ ABSL_GUARDED_BY(mutex_);  // of contents
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace stride::durable
