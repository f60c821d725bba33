#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/bits.h"
#include "server/base/environment.h"
#include "server/base/fair_mutex.h"
#include "server/base/steady_time.h"
#include "server/base/tenant_partition.h"

namespace stride::engine {

// The locks of the tenant partitions, and a common one for global transactions. Only transactions
// take them: the common lock first, then partitions in their order. The data of a partition lies in
// the PerPartition members of the parts, which a transaction with the lock reaches
// (docs/decisions/0059-tenant-partitions.md).
class TenantPartitions {
 public:
  void Lock(int partition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!IsUsed(partition)) {
      // A global transaction has the partitions that were in use when it began.
      common_.Lock();
      used_.fetch_or(PartitionBit(partition), std::memory_order_release);
      common_.Unlock();
    }
    partitions_[partition].mutex.Lock();
  }
  // Does not wait. Fails also where the partition is not in use yet, since adding it may wait.
  bool TryLock(int partition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return IsUsed(partition) && partitions_[partition].mutex.TryLock();
  }
  // A set of partitions has one bit for each.
  void Unlock(uint64_t partitions) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    ForEachBit(partitions, [this](int partition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      partitions_[partition].mutex.Unlock();
    });
  }

  void LockCommon() ABSL_NO_THREAD_SAFETY_ANALYSIS { common_.Lock(); }
  void UnlockCommon() ABSL_NO_THREAD_SAFETY_ANALYSIS { common_.Unlock(); }
  // Takes the common lock once the condition, which it guards, holds or the deadline passes.
  // Returns whether the condition holds.
  bool AwaitCommon(const absl::Condition& condition,
                   SteadyTime deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    common_.Lock();
    return Await(common_.base(), condition, deadline);
  }
  // Locks all partitions in use, and so all that can be. The caller has the common lock.
  uint64_t LockUsed() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const uint64_t used = used_.load(std::memory_order_relaxed);
    ForEachBit(used, [this](int partition)
                         ABSL_NO_THREAD_SAFETY_ANALYSIS { partitions_[partition].mutex.Lock(); });
    return used;
  }
  // The partitions that a transaction has used. Others need no lock.
  uint64_t used() const { return used_.load(); }

 private:
  struct alignas(64) Partition {
    FairMutex mutex;
  };
  bool IsUsed(int partition) const {
    return (used_.load(std::memory_order_acquire) & PartitionBit(partition)) != 0;
  }

  FairMutex common_;
  std::array<Partition, kNumTenantPartitions> partitions_;
  std::atomic<uint64_t> used_{0};  // grows under `common_`
};

}  // namespace stride::engine
