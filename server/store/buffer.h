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
#include "server/base/stripe.h"
#include "server/store/arena.h"

namespace stride::store {

// Something that reads or writes a buffer and has not ended: a scheduler's task. Only its identity
// matters here.
struct Access {
  virtual ~Access() = default;
};

struct Buffer;

// Collects what happens to buffers for those who must know: the blocks of those that died, wherever
// that happened, until the scheduler frees them under its lock; and those with a record that
// changed or died, for the recorder. By stripe of the buffers' tenants: who holds one stripe's lock
// of the engine asks for that stripe's. Thread-safe, except where said.
class Reclaimer {
 public:
  struct Entry {
    TenantId tenant;
    int device;
    Allocation allocation;
  };
  // Gets every buffer's size when it is made, and the negative size when it dies. The control bytes
  // are those of the buffer itself and of its error. Called on any thread, with the scheduler's
  // lock or without; must not block.
  using Account = std::function<void(const TenantId& tenant, int64_t bytes, int64_t control_bytes)>;

  Reclaimer() = default;
  explicit Reclaimer(Account account) : account_(std::move(account)) {}

  void Add(Entry entry);
  // The stripe's, in place of what `entries` has, in its memory where that is enough.
  void TakeAll(int stripe, std::vector<Entry>* entries);
  void Count(const TenantId& tenant, int64_t bytes, int64_t control_bytes) const {
    if (account_) account_(tenant, bytes, control_bytes);
  }

  // Where a buffer stands in an order by last use.
  struct Use {
    uint64_t time = 0;
    Buffer* buffer = nullptr;
    auto operator<=>(const Use&) const = default;
  };
  // Of the buffers with a block in `place`, those that somebody would miss there or those that are
  // `spare`: who was used least lately after `after`, which moves on to it. Null: nobody. The
  // caller may be the last to let go of one. Under all stripes' locks.
  std::shared_ptr<Buffer> NextUsed(int place, bool spare, Use* after);
  // A buffer's blocks changed. Under its stripe's lock.
  void List(Buffer& buffer);

  // Counts uses, so that buffers can tell which was used last: of one stripe exactly, and of
  // several from one section of all locks to the next, or within some dozens. Under the stripe's
  // lock.
  uint64_t NextUse(int stripe);
  // At the end of every section of the stripe's lock.
  void EndUses(int stripe) {
    if (parts_[stripe].num_uses >= num_uses_.load(std::memory_order_relaxed) + kMostAhead)
      RaiseUses(parts_[stripe].num_uses);
  }
  // At the beginning and the end of every section of all.
  void LevelUses();
  // Those that ever had a buffer, one bit each.
  uint64_t used_stripes() const { return used_.load(std::memory_order_acquire); }

  // Under the stripe's lock.
  void AddChanged(std::shared_ptr<Buffer> buffer);
  std::vector<std::shared_ptr<Buffer>> TakeChanged(int stripe) {
    return std::exchange(parts_[stripe].changed, {});
  }
  bool any_changed(int stripe) const { return !parts_[stripe].changed.empty(); }

  // A buffer dies: nobody finds it any more, and its blocks are TakeAll's.
  void Retire(Buffer& buffer);
  // Records of those that died. What is taken here covers every entry that TakeAll gave before.
  std::vector<uint64_t> TakeDeadRecords(int stripe);

 private:
  using Order = absl::btree_map<Use, std::weak_ptr<Buffer>>;
  struct alignas(64) Part {
    absl::Mutex mutex;
    std::vector<Entry> entries ABSL_GUARDED_BY(mutex);
    std::vector<uint64_t> dead_records ABSL_GUARDED_BY(mutex);
    // By place and `spare`. A use moves nothing: that is made good when somebody looks.
    std::map<std::pair<int, bool>, Order> orders ABSL_GUARDED_BY(mutex);
    // Those whose blocks changed since somebody looked: most die before the next one does, and are
    // in no order ever. Linked through themselves, the latest first.
    Buffer* newest ABSL_GUARDED_BY(mutex) = nullptr;
    std::atomic<bool> any_dead{false};
    std::atomic<bool> any_entries{false};
    uint64_t num_uses = 0;                         // guarded by the stripe's lock
    std::vector<std::shared_ptr<Buffer>> changed;  // likewise
  };
  static void TakeOut(Part& part, Buffer& buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  // Enters the new ones into the orders.
  static void EnterNew(Part& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  // One stripe's share of NextUsed.
  static std::shared_ptr<Buffer> NextOf(Part& part, int place, bool spare, Use* after);

  const Account account_;
  std::array<Part, kNumStripes> parts_;
  // A stripe's count may be so far ahead of what all know: they need not tell each other each time.
  static constexpr uint64_t kMostAhead = 64;
  void RaiseUses(uint64_t count);

  friend struct Buffer;
  void Enter(int stripe) {
    const uint64_t bit = StripeBit(stripe);
    if ((used_.load(std::memory_order_relaxed) & bit) == 0) used_.fetch_or(bit);
  }
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> num_uses_{0};  // the most of any stripe, as far as it was told
};

// Device index, or place beyond the devices (scheduler/core.h) -> block with the content as of the
// last write that was sent, or that is being written. Changed only through its Buffer, which has it
// recorded.
class Replicas {
 public:
  using Map = absl::InlinedVector<std::pair<int, Allocation>, 1>;  // by device; most have one
  // There must be one: another's bytes in its place would be worse than an end.
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

// The bytes behind one or more arrays (views share them). Not thread-safe: the scheduler's lock
// guards all members.
struct Buffer : std::enable_shared_from_this<Buffer> {
  Buffer(TenantId tenant, int64_t size, std::shared_ptr<Reclaimer> reclaimer)
      : tenant(std::move(tenant)),
        size(size),
        stripe(StripeOf(this->tenant)),
        reclaimer_(std::move(reclaimer)) {
    reclaimer_->Enter(stripe);
    reclaimer_->Count(this->tenant, size, control_bytes_);
  }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // The content, or what will be the content, lies in this block too.
  void AddReplica(int device, const Allocation& allocation);
  // Gives one device's block back.
  void DropReplica(int device);
  // Gets the content of another buffer of its size, which has none afterwards; nothing is copied.
  void TakeContent(Buffer& other);
  // Only `device` keeps the content, as after a write there.
  void KeepOnly(int device);
  // The file that has its present content; 0: none has.
  void SetKept(uint64_t file);
  // Its replicas get their content from that file.
  void SetLoading(bool loading);
  // Whether an upload is still to fill it.
  void SetIncoming(bool is);
  // Its content is not what it should be; the first error stays.
  void Spoil(const absl::Status& status);
  // A write in place by the session, `sessions/{id}`, was refused or ended before it ran. The
  // content is good, but not for that session: it counts on the write. Its first error stays.
  void LoseWrite(const std::string& session, const absl::Status& status);
  // The same for one that an earlier daemon had recorded.
  struct LostWrite {
    std::string session;
    absl::Status status;
  };
  void RestoreLostWrite(LostWrite lost);
  // Why the session's write was lost; OK: none was.
  const absl::Status& LostWriteOf(std::string_view session) const;
  // The same for a buffer of an earlier daemon: no listener is notified.
  void RestoreError(const absl::Status& status);

  // A block of it may go for nothing: there is another copy, or the content is spoiled.
  bool spare() const { return replicas.size() > 1 || inline_bytes != nullptr || !error.ok(); }

  const TenantId tenant;
  const int64_t size;  // bytes
  const int stripe;    // the tenant's
  Replicas replicas;
  // Content that came inside a request and is on no device yet. Dropped at the first write.
  std::shared_ptr<const std::string> inline_bytes;
  // First error that spoiled the content; OK while it is good. Set by Spoil.
  absl::Status error;
  std::vector<LostWrite> lost_writes;  // set by LoseWrite
  uint64_t num_writes = 0;             // begun: invalidates a copy that was in flight then
  bool incoming = false;               // set by SetIncoming
  // Unfinished accesses, for ordering: the last writer, and the readers since.
  std::shared_ptr<Access> writer;
  absl::InlinedVector<std::shared_ptr<Access>, 1, PoolAllocator<std::shared_ptr<Access>>> readers;
  // Tasks and transfers that count on its blocks to stay where they are.
  int num_holders = 0;
  // Clients that have its memory mapped: nothing writes it meanwhile.
  int num_loans = 0;
  // When it was used last, as Reclaimer::NextUse counts.
  uint64_t last_use = 0;
  void Touch() { last_use = reclaimer_->NextUse(stripe); }
  // Id of its record in the journal; 0: it has none, since nothing that outlives its call uses it.
  uint64_t record = 0;
  bool changed = false;  // waits for the recorder
  uint64_t kept = 0;     // set by SetKept
  bool loading = false;  // set by SetLoading
  // An input or a result that travels inside a call and ends with it: nothing else uses it.
  bool passing = false;

 private:
  void Changed();
  void BlocksChanged();
  std::shared_ptr<Reclaimer> reclaimer_;
  // Measured, with its block and its record, and rounded up.
  static constexpr int64_t kControlBytes = 768;
  int64_t control_bytes_ = kControlBytes;

  // Where the reclaimer has it, guarded by its lock.
  friend class Reclaimer;
  absl::InlinedVector<std::pair<int, uint64_t>, 1> listed_;  // place, and the time of use
  bool listed_spare_ = false;
  bool is_new_ = false;
  Buffer *newer_ = nullptr, *older_ = nullptr;  // among the new ones
};

}  // namespace stride::store
