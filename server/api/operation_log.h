#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/base/watched_condition.h"
#include "server/engine/service/operation_handle.h"

namespace stride::api {

// Operations of one stream, numbered in order: the ones that have not ended, and the first error.
// It keeps no handle, since a handle keeps arrays. Thread-safe; the callbacks of operations that
// outlive their stream keep it alive.
class OperationLog : public std::enable_shared_from_this<OperationLog> {
 public:
  static std::shared_ptr<OperationLog> Create() {
    return std::shared_ptr<OperationLog>(new OperationLog());
  }

  void Accepted(engine::OperationHandle& handle, engine::SubmitBatch* batch = nullptr);
  void Refused(const absl::Status& error);
  // Ends a group of operations and returns the number of its last one; 0 without operations.
  uint64_t Mark();

  // Waits until all operations up to `number`, a result of Mark, have ended, at most until
  // `deadline`. Consumes no error.
  bool HaveEnded(uint64_t number, SteadyTime deadline);
  // Waits until all operations up to `number`, a result of Mark, have ended. Returns, once, the
  // first error since the previous Mark. DEADLINE_EXCEEDED if they have not ended by `deadline`.
  // One thread at a time.
  absl::Status WaitFor(uint64_t number, SteadyTime deadline);

 private:
  OperationLog() = default;
  struct Entry {
    OperationLog* log;
    uint64_t number;
    bool ended = false;
  };
  // Returns the entry of the next operation. It keeps the log alive, and is small enough for a
  // callback without an allocation.
  std::shared_ptr<Entry> Enter();
  void Ended(Entry& entry, const absl::Status& status);
  // Callers hold mutex_.
  void Note(uint64_t number, const absl::Status& status);
  bool AwaitEnd(uint64_t number, SteadyTime deadline, std::unique_lock<std::mutex>& lock);
  bool EndedUpTo(uint64_t number) const {
    return number < (entries_.empty() ? last_ + 1 : entries_.front().number);
  }

  mutable std::mutex mutex_;
  WatchedCondition ended_;
  uint64_t last_ = 0;  // guarded by mutex_, as are all below
  // From the first on that has not ended: they end nearly in order.
  std::deque<Entry> entries_;
  uint64_t awaited_ = UINT64_MAX;  // by WaitFor
  // Marks that were not waited for. The first error of each stretch is under the mark that ends it,
  // that of the stretch still open under kOpen.
  static constexpr uint64_t kOpen = UINT64_MAX;
  std::set<uint64_t> marks_;
  std::map<uint64_t, std::pair<uint64_t, absl::Status>> errors_;
};

}  // namespace stride::api
