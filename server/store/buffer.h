#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/block_pool.h"
#include "server/base/ids.h"
#include "server/base/tenant_partition.h"
#include "server/store/arena.h"

namespace stride::store {

// An unfinished task or transfer that reads or writes a buffer. Compared by identity only.
struct Access {
  virtual ~Access() = default;
};

struct Buffer;

// Collects changes of buffers: the blocks of destroyed buffers, on any thread, until the scheduler
// frees them under its lock; and buffers with a record that changed or were destroyed, for the
// journal writer. Split by the tenant partition of the buffers: the holder of a partition's lock
// collects for that partition. Thread-safe, except where noted.
class Reclaimer {
 public:
  struct Entry {
    TenantId tenant;
    int device;
    Allocation allocation;
  };
  // Called with each buffer's size when it is created, and with the negative size when it is
  // destroyed. The control bytes are those of the buffer object and its error. Called on any
  // thread, with or without the scheduler's lock; must not block.
  using Account = std::function<void(const TenantId& tenant, int64_t bytes, int64_t control_bytes)>;

  Reclaimer() = default;
  explicit Reclaimer(Account account) : account_(std::move(account)) {}

  void Add(Entry entry);
  // Replaces the content of `entries` by the partition's collected entries; reuses its memory.
  void TakeAll(int partition, std::vector<Entry>* entries);
  void Count(const TenantId& tenant, int64_t bytes, int64_t control_bytes) const {
    if (account_) account_(tenant, bytes, control_bytes);
  }

  // A buffer's position in the order by last use.
  struct Use {
    uint64_t time = 0;
    Buffer* buffer = nullptr;
    auto operator<=>(const Use&) const = default;
  };
  // The least recently used buffer after `after` among those with a block in memory space `place`;
  // null: none. `spare` selects blocks that can be dropped without loss, else blocks that cannot.
  // Advances `after` to it. The result may be the last reference. Under the locks of all
  // partitions.
  std::shared_ptr<Buffer> NextUsed(int place, bool spare, Use* after);
  // Call when a buffer's blocks have changed. Under its partition's lock.
  void List(Buffer& buffer);

  // Counts uses, so that buffers can be ordered by last use. The order is exact within a partition;
  // across partitions it is exact from one global transaction to the next, else within kMostAhead
  // uses. Under the partition's lock.
  uint64_t NextUse(int partition);
  // Call at the end of each transaction of the partition.
  void EndUses(int partition) {
    if (parts_[partition].num_uses >= num_uses_.load(std::memory_order_relaxed) + kMostAhead)
      RaiseUses(parts_[partition].num_uses);
  }
  // Call at the beginning and the end of each global transaction.
  void LevelUses();
  // Bit set of partitions that ever had a buffer.
  uint64_t used_partitions() const { return used_.load(std::memory_order_acquire); }

  // Under the partition's lock.
  void AddChanged(std::shared_ptr<Buffer> buffer);
  std::vector<std::shared_ptr<Buffer>> TakeChanged(int partition) {
    return std::exchange(parts_[partition].changed, {});
  }
  bool any_changed(int partition) const { return !parts_[partition].changed.empty(); }

  // Called by a buffer's destructor: removes the buffer from the orders and queues its blocks for
  // TakeAll.
  void Retire(Buffer& buffer);
  // Records of destroyed buffers. Covers each entry that an earlier TakeAll returned.
  std::vector<uint64_t> TakeDeadRecords(int partition);

 private:
  using Order = absl::btree_map<Use, std::weak_ptr<Buffer>>;
  struct alignas(64) Part {
    absl::Mutex mutex;
    std::vector<Entry> entries ABSL_GUARDED_BY(mutex);
    std::vector<uint64_t> dead_records ABSL_GUARDED_BY(mutex);
    // By memory space and `spare`. A use does not reorder; NextUsed corrects stale positions.
    std::map<std::pair<int, bool>, Order> orders ABSL_GUARDED_BY(mutex);
    // Buffers whose blocks changed since the last NextUsed, as an intrusive list, the latest first.
    // Most are destroyed before the next call and never enter an order.
    Buffer* newest ABSL_GUARDED_BY(mutex) = nullptr;
    std::atomic<bool> any_dead{false};
    std::atomic<bool> any_entries{false};
    uint64_t num_uses = 0;                         // guarded by the partition's lock
    std::vector<std::shared_ptr<Buffer>> changed;  // guarded by the partition's lock
  };
  static void TakeOut(Part& part, Buffer& buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  // Enters the buffers of the list into the orders.
  static void EnterNew(Part& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  // One partition's part of NextUsed.
  static std::shared_ptr<Buffer> NextOf(Part& part, int place, bool spare, Use* after);

  const Account account_;
  std::array<Part, kNumTenantPartitions> parts_;
  // Most uses by which a partition's count may be ahead of the shared one, which saves updates of
  // it.
  static constexpr uint64_t kMostAhead = 64;
  void RaiseUses(uint64_t count);

  friend struct Buffer;
  void Enter(int partition) {
    const uint64_t bit = PartitionBit(partition);
    if ((used_.load(std::memory_order_relaxed) & bit) == 0) used_.fetch_or(bit);
  }
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> num_uses_{0};  // largest count that a partition has published
};

// Maps a device index, or a memory space beyond the devices (scheduler/core.h), to the block with
// the content as of the last write that was submitted or is in flight. Only its Buffer changes it
// and records the change.
class Replicas {
 public:
  using Map = absl::InlinedVector<std::pair<int, Allocation>, 1>;  // by device; most have one
  // Requires an entry. Aborts without one: another tenant's bytes would be worse.
  const Allocation& at(int device) const {
    auto place = find(device);
    if (place == end()) std::abort();
    return place->second;
  }
  size_t count(int device) const { return find(device) != end() ? 1 : 0; }
  Map::const_iterator find(int device) const {
    return std::find_if(begin(), end(), [&](const auto& entry) { return entry.first == device; });
  }
  Map::const_iterator begin() const { return map_.begin(); }
  Map::const_iterator end() const { return map_.end(); }
  bool empty() const { return map_.empty(); }
  size_t size() const { return map_.size(); }

 private:
  friend struct Buffer;
  void Set(int device, const Allocation& allocation);
  Map map_;
};

// The memory of one or more arrays (views share it). Not thread-safe: the scheduler's lock guards
// all members.
struct Buffer : std::enable_shared_from_this<Buffer> {
  Buffer(TenantId tenant, int64_t size, std::shared_ptr<Reclaimer> reclaimer)
      : tenant(std::move(tenant)),
        size(size),
        partition(PartitionOf(this->tenant)),
        reclaimer_(std::move(reclaimer)) {
    reclaimer_->Enter(partition);
    reclaimer_->Count(this->tenant, size, control_bytes_);
  }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Adds a block that has the content, or that a write in flight fills.
  void AddReplica(int device, const Allocation& allocation);
  // Frees one device's block.
  void DropReplica(int device);
  // Takes over the content of another buffer of the same size, which is empty afterwards; copies
  // nothing.
  void TakeContent(Buffer& other);
  // Drops all other devices' blocks, as after a write on `device`.
  void KeepOnly(int device);
  // Sets the id of the file with its present content; 0: none.
  void SetKept(uint64_t file);
  // An upload is still to fill it.
  void SetIncoming(bool is);
  // Marks the content as spoiled; the first error stays.
  void Spoil(const absl::Status& status);
  // A write in place by the session, `sessions/{id}`, was refused or ended before it ran. The
  // content remains valid, but not for that session, which relies on the write. Its first error
  // stays.
  void LoseWrite(const std::string& session, const absl::Status& status);
  // The same for a write that an earlier daemon recorded.
  struct LostWrite {
    std::string session;
    absl::Status status;
  };
  void RestoreLostWrite(LostWrite lost);
  // Why the session's write was lost; OK: no write was lost.
  const absl::Status& LostWriteOf(std::string_view session) const;
  // Spoil for a buffer of an earlier daemon, without notifying a listener.
  void RestoreError(const absl::Status& status);

  // Whether one of its blocks may be dropped without loss: another copy exists, or the content is
  // spoiled.
  bool spare() const { return replicas.size() > 1 || inline_bytes != nullptr || !error.ok(); }

  const TenantId tenant;
  const int64_t size;   // bytes
  const int partition;  // the tenant's partition
  Replicas replicas;
  // Content that arrived in a request and is on no device yet. Dropped at the first write.
  std::shared_ptr<const std::string> inline_bytes;
  // The first error that spoiled the content; OK while it is valid. Set by Spoil.
  absl::Status error;
  std::vector<LostWrite> lost_writes;  // set by LoseWrite
  uint64_t num_writes = 0;             // writes begun; a change invalidates a copy in flight
  bool incoming = false;               // set by SetIncoming
  // Unfinished accesses, for ordering: the last writer, and the readers since.
  std::shared_ptr<Access> writer;
  absl::InlinedVector<std::shared_ptr<Access>, 1, PoolAllocator<std::shared_ptr<Access>>> readers;
  // Number of pins: tasks and transfers that need its blocks to stay in place.
  int pin_count = 0;
  // Number of clients that have its memory mapped. No write may begin while it is not 0.
  int num_loans = 0;
  // Count of its last use, by Reclaimer::NextUse.
  uint64_t last_use = 0;
  void Touch() { last_use = reclaimer_->NextUse(partition); }
  // Id of its record in the journal; 0: none, since only one call uses the buffer.
  uint64_t record = 0;
  bool changed = false;  // waits for the journal writer
  uint64_t kept = 0;     // set by SetKept
  bool loading = false;  // the file of SetKept is being read into the replicas
  // An input or a result that exists only within one call.
  bool passing = false;

 private:
  void Changed();
  void BlocksChanged();
  std::shared_ptr<Reclaimer> reclaimer_;
  // Bytes for a buffer, its block and its record; measured, and rounded up.
  static constexpr int64_t kControlBytes = 768;
  int64_t control_bytes_ = kControlBytes;

  // Its positions in the reclaimer, guarded by the reclaimer's lock.
  friend class Reclaimer;
  // memory space, and count of the use by which it is ordered
  absl::InlinedVector<std::pair<int, uint64_t>, 1> listed_;
  bool listed_spare_ = false;
  bool is_new_ = false;
  Buffer *newer_ = nullptr, *older_ = nullptr;  // neighbours in the list of new buffers
};

}  // namespace stride::store
