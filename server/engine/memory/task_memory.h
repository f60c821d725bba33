#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/memory/memory_manager.h"
#include "server/engine/memory/out_of_core.h"

namespace stride::engine {

// The memory of a placed task: blocks for its buffers, work memory, and its inputs in them. A task
// takes all that it lacks, or nothing. Its buffers are pinned from then to its end.
//
// A task that finds free blocks in its queue's arenas needs only its tenant's transaction, and no
// call of TaskEvents.
class TaskMemory {
 public:
  TaskMemory(Core* core, MemoryManager* memory, OutOfCoreExecutor* out_of_core, TaskEvents* events)
      : core_(core), memory_(memory), out_of_core_(out_of_core), events_(events) {}

  // Takes the memory that a prepared task lacks, pins its buffers and begins to copy its inputs.
  // Returns whether all are there. False: TaskEvents::Prepare follows, or the task was ended,
  // runs in pieces, or waits for earlier accesses.
  bool Take(TenantTransaction& transaction, const std::shared_ptr<Task>& task);

  // Pins the task's buffers where they are. A pinned task is left as it is.
  void Pin(TenantTransaction& transaction, Task& task);
  // Gives back what Take and Pin took, before the task leaves its queue. It waits for no memory
  // any more.
  void Release(TenantTransaction& transaction, Task& task);
  // The launch of an abandoned task has ended: releases the buffers that the launch used.
  void ReleaseAbandoned(TenantTransaction& transaction, const DeviceQueue::InFlight& entry);

  // Frees the memory of the outputs that the uses make whole, without their content.
  static void DropFresh(absl::Span<const Use> uses);
  // Whether the task is to write memory that a client has mapped.
  static bool WritesLoan(const Task& task);

 private:
  using Buffers = absl::InlinedVector<std::shared_ptr<store::Buffer>, 3>;
  Buffers Lacking(TenantTransaction& transaction, const Task& task);
  bool TakeFreeBlocks(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                      const Buffers& lacking);
  bool AllocateInPlace(TenantTransaction& transaction, const Task& task,
                       const store::Buffer& buffer, store::Allocation* block);
  bool FillAtOnce(Task& task, store::Buffer& buffer, const store::Allocation& block);
  bool TakeOrWait(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                  const Buffers& lacking);
  Memory::Outcome Allocate(GlobalTransaction& transaction, Task& task, uint64_t scratch,
                           uint64_t turn, const Buffers& lacking,
                           absl::InlinedVector<store::Allocation, 2>* blocks);
  void PrepareWithAll(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void AwaitInputs(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool Unpin(TenantTransaction& transaction, Task& task);
  uint64_t CountedScratch(const Task& task) const;

  Core* const core_;
  MemoryManager* const memory_;
  OutOfCoreExecutor* const out_of_core_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
