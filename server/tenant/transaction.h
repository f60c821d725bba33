#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/base/bits.h"
#include "server/base/block_pool.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/base/tenant_partition.h"
#include "server/tenant/device_account.h"

namespace stride::broker {
class Worker;
}

namespace stride::engine {

struct Core;
struct DeviceQueue;
struct Task;
class GlobalTransaction;

// The right to read and change what belongs to the tenants of one partition, for as long as it
// lives. It holds the partition's lock. A function that touches one tenant takes this type, so that
// the compiler finds a call without the lock (docs/decisions/0054-transactions.md).
//
// The end of a transaction does its work list, commits its changes to the journal, adds its device
// changes to the accounts, and releases the lock. Then, on the same thread and without a lock, it
// flushes packets to workers and calls deferred functions, which may begin a transaction. A thread
// has one transaction at a time. A transaction takes microseconds: it waits for no worker, file or
// client.
class TenantTransaction {
 public:
  TenantTransaction(Core& core, const TenantId& tenant)
      : TenantTransaction(core, stride::PartitionOf(tenant)) {}
  TenantTransaction(Core& core, int partition);
  // The caller has the partition's lock.
  TenantTransaction(Core& core, int partition, std::adopt_lock_t);
  // Does not wait. Empty if another thread has the partition, or if no transaction of its own has
  // used the partition yet.
  static std::optional<TenantTransaction> IfFree(Core& core, const TenantId& tenant);
  ~TenantTransaction();
  TenantTransaction(const TenantTransaction&) = delete;
  TenantTransaction& operator=(const TenantTransaction&) = delete;

  // This transaction if it has all partitions, else null.
  inline GlobalTransaction* global();
  bool is_global() const { return partition_ == kAll; }
  // The partition of a transaction that is not global.
  int partition() const {
    assert(!is_global());
    return partition_;
  }
  bool Has(const TenantId& tenant) const {
    return is_global() || stride::PartitionOf(tenant) == partition_;
  }
  // The index of the tenant's partition, which this transaction has.
  int PartitionOf(const TenantId& tenant) const {
    assert(Has(tenant));
    return is_global() ? stride::PartitionOf(tenant) : partition_;
  }
  // Calls `visit` with the index of each partition that this transaction has and that ever had a
  // buffer.
  template <typename Visit>
  void ForEachPartition(Visit visit) const {
    ForEachBit(buffer_partitions(), visit);
  }

  // Calls `function` after the end of this transaction, on this thread, without a lock.
  template <typename Function>
  void Defer(Function&& function) {
    deferred_.push_back(std::forward<Function>(function));
  }
  // Room for more calls of Defer.
  void ReserveDeferred(size_t count) { deferred_.reserve(deferred_.size() + count); }
  // Threads in GlobalTransaction::Await evaluate their conditions soon.
  void WakeWaiters();
  // Flushes the worker's packets after the end of this transaction.
  void FlushLater(const std::shared_ptr<broker::Worker>& worker) {
    if (outgoing_.empty() || outgoing_.back() != worker) outgoing_.push_back(worker);
  }

  // Changes of a device's account by this transaction. Null: none.
  const DeviceChange* FindChange(int device) const {
    for (const DeviceChange& change : device_changes_) {
      if (change.device == device) return &change;
    }
    return nullptr;
  }
  DeviceChange& ChangeOf(int device) {
    for (DeviceChange& change : device_changes_) {
      if (change.device == device) return change;
    }
    device_changes_.push_back({.device = device});
    return device_changes_.back();
  }

  // Tasks that become ready for a busy worker wait for EndBatch, and so travel in one packet.
  void BeginBatch() { is_batch_ = true; }
  bool is_batch() const { return is_batch_; }
  void HoldUntilEndOfBatch(DeviceQueue& queue) {
    if (std::find(held_.begin(), held_.end(), &queue) == held_.end()) held_.push_back(&queue);
  }
  // Returns the device queues with tasks that waited for it.
  absl::InlinedVector<DeviceQueue*, 2> EndBatch() {
    is_batch_ = false;
    return std::exchange(held_, {});
  }
  // Work that Scheduler::Settle does before the transaction ends, one thing after another and not
  // one inside another: an error may run down a chain of tasks of any length.
  struct Work {
    // The device queue sends what it may send now.
    void Pump(DeviceQueue& queue) { AddOnce(&queue, pumped); }
    // The device begins the time slices that are due.
    void GiveTurns(int device) { AddOnce(device, devices); }

    // Tasks to be evaluated, since something that they waited for has ended. In this order.
    absl::InlinedVector<std::shared_ptr<Task>, 2, PoolAllocator<std::shared_ptr<Task>>> freed;
    absl::InlinedVector<DeviceQueue*, 2> pumped;  // device queues that may send tasks; each once
    absl::InlinedVector<int, 2> devices;          // devices that may begin a time slice; each once
    bool empty() const { return freed.empty() && pumped.empty() && devices.empty(); }

   private:
    template <typename T>
    static void AddOnce(T item, absl::InlinedVector<T, 2>& list) {
      if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
    }
  };
  Work& work() { return work_; }

 protected:
  static constexpr int kAll = -1;
  // All partitions.
  explicit TenantTransaction(Core& core) : core_(core), partition_(kAll) {}

  // Partitions for ForEachPartition, one bit each.
  uint64_t buffer_partitions() const;
  void TakeAll();
  // Commits and releases all locks.
  void End();
  // Does what the ended part of the transaction left to be done without a lock.
  void RunDeferred();

  using Deferred =
      std::vector<absl::AnyInvocable<void()>, PoolAllocator<absl::AnyInvocable<void()>>>;

  Core& core_;
  const int partition_;
  uint64_t taken_ = 0;  // the partitions whose locks it holds, one bit each
  bool is_batch_ = false;
  Deferred deferred_;
  absl::InlinedVector<std::shared_ptr<broker::Worker>, 2> outgoing_;
  absl::InlinedVector<DeviceQueue*, 2> held_;
  Work work_;
  absl::InlinedVector<DeviceChange, 1> device_changes_;

  template <typename T>
  friend class PerPartition;
};

// The right to read and change everything. It holds the locks of all partitions, so it is a
// TenantTransaction for every tenant. State of no tenant changes in global transactions only.
class GlobalTransaction : public TenantTransaction {
 public:
  explicit GlobalTransaction(Core& core);

  // Ends the transaction, waits until the condition holds or the deadline passes, and begins
  // another. Returns whether the condition holds. The condition is evaluated with the common lock
  // alone when a global transaction ends. It may depend on what only global transactions change,
  // and on atomics whose changes are followed by a global transaction.
  bool Await(const absl::Condition& condition, SteadyTime deadline);
};

inline GlobalTransaction* TenantTransaction::global() {
  return is_global() ? static_cast<GlobalTransaction*>(this) : nullptr;
}

// One T for each partition, found only through a transaction that has the partition.
template <typename T>
class PerPartition {
 public:
  T& Of(const TenantTransaction& transaction, const TenantId& tenant) {
    return parts_[transaction.PartitionOf(tenant)];
  }
  const T& Of(const TenantTransaction& transaction, const TenantId& tenant) const {
    return parts_[transaction.PartitionOf(tenant)];
  }
  T& At(const TenantTransaction& transaction, int partition) {
    assert(transaction.is_global() || transaction.partition_ == partition);
    return parts_[partition];
  }
  std::array<T, kNumTenantPartitions>& All(const GlobalTransaction&) { return parts_; }
  const std::array<T, kNumTenantPartitions>& All(const GlobalTransaction&) const { return parts_; }
  // For members that need no lock, and where no other thread is left.
  std::array<T, kNumTenantPartitions>& Unguarded() { return parts_; }
  const std::array<T, kNumTenantPartitions>& Unguarded() const { return parts_; }

 private:
  std::array<T, kNumTenantPartitions> parts_;
};

}  // namespace stride::engine
