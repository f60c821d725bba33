#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task_events.h"
#include "server/engine/memory/block_copier.h"
#include "server/engine/memory/copies_in_flight.h"
#include "server/engine/memory/eviction_plan.h"
#include "server/engine/memory/memory.h"
#include "server/engine/memory/memory_waiters.h"
#include "server/engine/service/spill_sample.h"

namespace stride::engine {

// Allocates in memory spaces that may be full: idle buffers are evicted from a device to host
// memory, and from there to files. Chosen in the transaction, copied by a thread.
class Eviction {
 public:
  Eviction(Core* core, DeviceQueues* queues, Memory* memory, CopiesInFlight* copies,
           BlockCopier* copier, MemoryWaiters* waiters, TaskEvents* events);

  // Like Memory::Allocate, and evicts. kLater also means that evictions are in flight, after which
  // the waiters for memory are tried.
  Memory::Outcome Allocate(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                           uint64_t turn, store::Allocation* allocation);
  // The same for work memory, which lies in no arena: Memory::TakeScratch.
  Memory::Outcome AllocateScratch(GlobalTransaction& transaction, DeviceQueue& queue,
                                  uint64_t bytes, uint64_t turn);

  // Totals since the start: spilled, dropped, looked at.
  const SpillSample& totals(GlobalTransaction&) const { return totals_; }

 private:
  class Victims;
  // A block to evict.
  struct Victim {
    std::shared_ptr<store::Buffer> buffer;
    DeviceQueue* from;
    DeviceQueue* to;  // null: there is another copy, or no need for one
    store::Allocation source, target;
  };
  // Those of one search, in the order of eviction.
  struct Choice {
    std::vector<Victim> victims;
    size_t num_needed = 0;  // those after them are small ones that join the group
    bool later = false;     // the next victim waits for room elsewhere
  };

  Memory::Outcome MakeRoom(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                           uint64_t turn, bool outside);
  Choice Choose(GlobalTransaction& transaction, const DeviceQueue& queue, uint64_t turn,
                EvictionPlan* plan);
  Memory::Outcome FindTarget(GlobalTransaction& transaction, Victim* victim, uint64_t turn);
  Memory::Outcome Evict(GlobalTransaction& transaction, int place, std::vector<Victim> victims);
  void CopyAll(const std::vector<Victim>& victims);
  void Copied(GlobalTransaction& transaction, const Victim& victim, const absl::Status& status);
  void CopyFailed(GlobalTransaction& transaction, const Victim& victim, const absl::Status& status);

  Core* const core_;
  DeviceQueues* const queues_;
  Memory* const memory_;
  CopiesInFlight* const copies_;
  BlockCopier* const copier_;
  MemoryWaiters* const waiters_;
  TaskEvents* const events_;
  // Evictions from, and to, each memory space.
  struct Place {
    int num_copies = 0;       // from here, in flight
    bool failed = false;      // the last ones from here did; reported once, by the next MakeRoom
    SteadyTime closed_until;  // writing here failed: nothing is sent here before this
  };
  std::vector<Place> places_;
  SpillSample totals_;
};

}  // namespace stride::engine
