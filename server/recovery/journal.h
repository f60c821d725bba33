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
#include "server/keeper/keeper.h"
#include "server/recovery/journal_file.h"
#include "server/recovery/record_index.h"

namespace stride::recovery {

// Books, as records by key, in memory that a keeper holds: they outlive this process, though not
// the machine. What is set and erased between two commits is seen by a reader as a whole or not at
// all. Costs no system call but when it grows.
//
// There are two files. One is written, each batch behind the last; when most of it is stale, what
// is not goes to the other, which then has the higher generation. Not thread-safe.
class Journal {
 public:
  // At the keeper, of the first and the second file.
  static std::string FileName(const std::string& journal, int file);

  // An empty one, stored with the keeper, which must outlive it.
  static absl::StatusOr<std::unique_ptr<Journal>> Create(keeper::Keeper* keeper,
                                                         const std::string& name);
  // The one that an earlier process left in these files, to be read and gone on with. DATA_LOSS
  // when anything in it is not as it was written, or a file is missing (an invalid descriptor);
  // nothing of it is believed then.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(keeper::Keeper* keeper,
                                                       const std::string& name, UniqueFd first,
                                                       UniqueFd second);

  // Room for a record of this size under the key, in place of what it had; to be filled before the
  // next call.
  char* Set(uint64_t key, uint32_t size);
  void Set(uint64_t key, std::string_view bytes);
  void Erase(uint64_t key);
  bool Has(uint64_t key) const { return index_.Find(key) != nullptr; }

  // Makes what was set and erased since visible, at once. An error (no memory) is for good: the
  // files then hold what the last good commit left.
  absl::Status Commit();
  // Gives back memory that a time of more work has left. To be called once in a second or so: what
  // was not needed for some of them goes, since to have it anew for the next batches takes longer
  // than to write them. Between batches.
  void Trim();

  void ForEach(const std::function<void(uint64_t key, std::string_view bytes)>& visit) const;

  size_t num_records() const { return index_.size(); }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t generation() const { return file_.generation(); }

  // How often a process began to recover from this journal since one was done with it: a number
  // that grows means that recovery itself kills the daemon.
  uint32_t CountAttempt() { return file_.CountAttempt(); }
  void ResetAttempts() { file_.ResetAttempts(); }

  // A successor does not find it. Any thread.
  void LetGo();

 private:
  Journal(keeper::Keeper* keeper, std::string name) : keeper_(keeper), name_(std::move(name)) {}
  absl::Status ReadBack();
  char* Append(uint64_t key, uint32_t size, bool erased);
  void Forget(uint64_t key);
  void Compact();
  absl::Status StoreFile(int index, const JournalFile& file);

  keeper::Keeper* const keeper_;
  const std::string name_;
  JournalFile file_, other_;
  RecordIndex index_;
  uint64_t live_bytes_ = 0;  // of records, their headers included
  uint64_t end_ = 0;         // of what was appended
  uint64_t wanted_ = 0;      // the largest file of late, in bytes
  bool in_batch_ = false;
  absl::Status broken_;
};

}  // namespace stride::recovery
