#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"
#include "server/fd_store/fd_store.h"
#include "server/recovery/journal_file.h"
#include "server/recovery/record_index.h"

namespace stride::recovery {

// Records by key in memory that an FdStore holds: they survive this process, but not the machine.
// All changes between two commits become visible to a reader together or not at all. Costs no
// system call except to grow.
//
// There are two files. Batches are appended to one. When most of it is stale, the live records are
// copied to the other, which then gets the higher generation. Not thread-safe.
class Journal {
 public:
  // Name at the FdStore of the first (0) or second (1) file.
  static std::string FileName(const std::string& journal, int file);

  // Creates an empty journal and stores it with `FdStore`, which must outlive it.
  static absl::StatusOr<std::unique_ptr<Journal>> Create(fd_store::FdStore* fd_store,
                                                         const std::string& name);
  // Opens the journal that an earlier process left in these files, for reading and further writes.
  // DATA_LOSS when a file is missing (an invalid descriptor) or a checksum is wrong; no record is
  // used then.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(fd_store::FdStore* fd_store,
                                                       const std::string& name, UniqueFd first,
                                                       UniqueFd second);

  // Sets the key's record and returns room for its bytes, to be filled before the next call.
  // nullptr after an error, which Commit reports.
  char* Set(uint64_t key, uint32_t size);
  void Set(uint64_t key, std::string_view bytes);
  void Erase(uint64_t key);
  bool Has(uint64_t key) const { return index_.Find(key) != nullptr; }

  // Makes all changes since the last commit visible at once. An error (no memory) is permanent: the
  // files then hold the last good commit.
  absl::Status Commit();
  // Returns memory that a busier time has left to the kernel. Call about once a second, between
  // batches. The size decays over several calls, since new pages for the next batches cost more
  // than writing them.
  void Trim();

  void ForEach(const std::function<void(uint64_t key, std::string_view bytes)>& visit) const;

  size_t num_records() const { return index_.size(); }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t generation() const { return file_.generation(); }

  // Number of processes that began to recover from this journal since the last successful recovery.
  // A growing number means that recovery itself kills the daemon.
  uint32_t CountAttempt() { return file_.CountAttempt(); }
  void ResetAttempts() { file_.ResetAttempts(); }

  // Removes both files from the FdStore, so that a later daemon does not find them. Any thread.
  void LetGo();

 private:
  Journal(fd_store::FdStore* fd_store, std::string name)
      : fd_store_(fd_store), name_(std::move(name)) {}
  absl::Status ReadBack();
  char* Append(uint64_t key, uint32_t size, bool erased);
  void Forget(uint64_t key);
  void Compact();
  absl::Status StoreFile(int index, const JournalFile& file);

  fd_store::FdStore* const fd_store_;
  const std::string name_;
  JournalFile file_, other_;
  RecordIndex index_;
  uint64_t live_bytes_ = 0;  // bytes of live records, headers included
  uint64_t end_ = 0;         // end of the appended batch
  uint64_t wanted_ = 0;      // recent largest file size in bytes, decaying
  bool in_batch_ = false;
  absl::Status broken_;
};

}  // namespace stride::recovery
