#include "server/engine/memory/task_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/memory/out_of_memory.h"
#include "server/ops/scratch_bytes.h"

namespace stride::engine {
namespace {

// The error of a device without memory, or of a machine that lacks the resources to map more.
absl::Status NoMemoryFor(const DeviceQueue& queue, uint64_t size, uint64_t scratch,
                         uint64_t limit) {
  if (!queue.arenas.grow_lack.ok()) return queue.arenas.grow_lack;
  return OutOfMemory(queue.description.id(), size, limit, scratch);
}

// Inline values of a call up to this size are used in place, over the device's bus. For larger ones
// a copy is as fast (docs/measurements.md).
constexpr uint64_t kMaxInPlaceBytes = 256 << 10;

// Whether the task accesses each element about once. Repeated accesses are faster in device memory.
bool ReadsOnce(const Task& task) {
  return task.plan().task.has_elementwise() || task.plan().task.has_reduce();
}

// Whether the task overwrites the buffer's whole content.
bool MakesWhole(const Task& task, const store::Buffer& buffer) {
  return std::any_of(task.uses.begin(), task.uses.end(),
                     [&](const Use& use) { return use.buffer.get() == &buffer && use.fresh; });
}

// The total size of the buffers that the task uses, each counted once.
uint64_t BytesOf(const Task& task) {
  uint64_t bytes = 0;
  for (auto use = task.uses.begin(); use != task.uses.end(); ++use) {
    bool again = std::any_of(task.uses.begin(), use,
                             [&](const Use& other) { return other.buffer == use->buffer; });
    if (use->buffer != nullptr && !again) bytes += static_cast<uint64_t>(use->buffer->size);
  }
  return bytes;
}

}  // namespace

// Two tasks that each had a part of their memory would wait for each other.
bool TaskMemory::Take(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  const Buffers lacking = Lacking(transaction, *task);
  const bool has_scratch = task->memory.scratch_bytes > 0 || CountedScratch(*task) == 0;
  const bool taken = has_scratch && (lacking.empty() || TakeFreeBlocks(transaction, task, lacking));
  if (!taken) {
    GlobalTransaction* const global = transaction.global();
    if (global == nullptr) {
      PrepareWithAll(transaction, task);
      return false;
    }
    if (!TakeOrWait(*global, task, lacking)) return false;
  }
  memory_->waiters().Leave(transaction, *task);
  Pin(transaction, *task);
  AwaitInputs(transaction, task);
  return task->memory.num_moves == 0;
}

// The buffers without a block that the task can use on its device, each once.
TaskMemory::Buffers TaskMemory::Lacking(TenantTransaction& transaction, const Task& task) {
  const DeviceQueue& queue = *task.queue;
  Buffers lacking;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr || memory_->peers().BlockFor(task, use, queue) != nullptr) continue;
    if (!use.fresh && memory_->copies().Has(transaction, *use.buffer, queue.device)) continue;
    if (std::find(lacking.begin(), lacking.end(), use.buffer) == lacking.end())
      lacking.push_back(use.buffer);
  }
  return lacking;
}

// Has the task prepared in a global transaction, after this one.
void TaskMemory::PrepareWithAll(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  transaction.Defer([this, task] {
    GlobalTransaction transaction(*core_);
    events_->Prepare(transaction, task);
  });
}

// The common case of small operations: the device queue's arenas have free blocks, and inputs are
// inline. False: something is missing, and the state is unchanged.
bool TaskMemory::TakeFreeBlocks(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                                const Buffers& lacking) {
  DeviceQueue& queue = *task->queue;
  if (task->memory.pinned || task->memory.waits || !queue.memory_queue.empty()) return false;
  if (BytesOf(*task) > memory_->arenas().limit_bytes(queue.device)) return false;
  absl::InlinedVector<store::Allocation, 3> blocks;
  for (const auto& buffer : lacking) {
    store::Allocation& block = blocks.emplace_back();
    const bool found = AllocateInPlace(transaction, *task, *buffer, &block) ||
                       memory_->arenas().AllocateAtHand(
                           transaction, queue, static_cast<uint64_t>(buffer->size), &block);
    if (found && (MakesWhole(*task, *buffer) || Migration::BytesAtHand(*buffer, block) != nullptr))
      continue;
    if (!found) blocks.pop_back();
    for (const store::Allocation& taken : blocks) Memory::Free(transaction, queue, taken);
    return false;
  }
  queue.last_used = core_->Now();
  for (size_t i = 0; i < lacking.size(); ++i) FillAtOnce(*task, *lacking[i], blocks[i]);
  return true;
}

// Allocates a block for an inline value in host memory that the task's device accesses directly.
bool TaskMemory::AllocateInPlace(TenantTransaction& transaction, const Task& task,
                                 const store::Buffer& buffer, store::Allocation* block) {
  const auto size = static_cast<uint64_t>(buffer.size);
  return buffer.passing && size <= kMaxInPlaceBytes && ReadsOnce(task) &&
         memory_->arenas().AllocateZeroCopy(transaction, *task.queue, size, block);
}

// The block becomes the buffer's: the task makes its content, or it is copied there at once. False:
// it has to be moved.
bool TaskMemory::FillAtOnce(Task& task, store::Buffer& buffer, const store::Allocation& block) {
  if (MakesWhole(task, buffer)) {
    buffer.AddReplica(task.queue->device, block);
    return true;
  }
  const void* const bytes = Migration::BytesAtHand(buffer, block);
  if (bytes == nullptr) return false;
  if (task.timeline.move_start == SteadyTime()) task.timeline.move_start = core_->Now();
  std::memcpy(block.data(), bytes, static_cast<size_t>(buffer.size));
  buffer.AddReplica(task.queue->device, block);
  task.timeline.move_end = core_->Now();
  core_->device_accounts[task.queue->device].upload_bytes += buffer.size;
  return true;
}

// Takes all memory, evicting others' where needed. False: the task has none, and waits for it, runs
// in pieces or has ended.
bool TaskMemory::TakeOrWait(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                            const Buffers& lacking) {
  DeviceQueue& queue = *task->queue;
  const uint64_t limit = memory_->arenas().limit_bytes(queue.device);
  const uint64_t scratch = CountedScratch(*task);
  const uint64_t all = BytesOf(*task) + scratch;
  if (all > limit) {
    out_of_core_->Begin(transaction, task, NoMemoryFor(queue, all, scratch, limit));
    return false;
  }
  // A task that waits pins nothing, since others would wait for it.
  if (Unpin(transaction, *task)) memory_->Changed(transaction);
  if (!queue.memory_queue.empty() && queue.memory_queue.front() != task) {
    memory_->waiters().Enter(transaction, task);
    if (queue.memory_queue.front() == task)
      memory_->Changed(transaction);  // its priority is the highest
    return false;
  }
  const uint64_t turn = task->memory.waits ? task->memory.turn : UINT64_MAX;
  Pin(transaction, *task);  // its own buffers must not be evicted for it
  absl::InlinedVector<store::Allocation, 2> blocks;
  const Memory::Outcome outcome = Allocate(transaction, *task, scratch, turn, lacking, &blocks);
  if (outcome != Memory::Outcome::kAllocated) {
    for (; !blocks.empty(); blocks.pop_back()) Memory::Free(transaction, queue, blocks.back());
    Unpin(transaction, *task);
    if (outcome == Memory::Outcome::kFull && !memory_->MayComeFree(transaction, queue.device)) {
      events_->EndUnrun(transaction, task, NoMemoryFor(queue, all, scratch, limit));
    } else {
      memory_->waiters().Enter(transaction, task);
    }
    return false;
  }
  for (size_t i = 0; i < lacking.size(); ++i) {
    if (FillAtOnce(*task, *lacking[i], blocks[i])) continue;
    memory_->migration().Start(transaction, task, lacking[i], blocks[i]);
  }
  return true;
}

// Allocates work memory and a block for each buffer. `blocks` has those that were allocated before
// the first that was not.
Memory::Outcome TaskMemory::Allocate(GlobalTransaction& transaction, Task& task, uint64_t scratch,
                                     uint64_t turn, const Buffers& lacking,
                                     absl::InlinedVector<store::Allocation, 2>* blocks) {
  DeviceQueue& queue = *task.queue;
  Memory::Outcome outcome = Memory::Outcome::kAllocated;
  if (scratch > 0) outcome = memory_->eviction().AllocateScratch(transaction, queue, scratch, turn);
  if (outcome != Memory::Outcome::kAllocated) return outcome;
  task.memory.scratch_bytes = scratch;
  for (const auto& buffer : lacking) {
    store::Allocation block;
    if (!AllocateInPlace(transaction, task, *buffer, &block)) {
      outcome = memory_->eviction().Allocate(transaction, queue,
                                             static_cast<uint64_t>(buffer->size), turn, &block);
    }
    if (outcome != Memory::Outcome::kAllocated) return outcome;
    blocks->push_back(std::move(block));
  }
  return outcome;
}

// Work memory of the task that is to be counted on its queue's device.
uint64_t TaskMemory::CountedScratch(const Task& task) const {
  const uint64_t bytes = ops::ScratchBytes(task.plan().task);
  return bytes > memory_->arenas().uncounted_scratch_bytes(task.queue->device) ? bytes : 0;
}

// Waits for inputs whose copy to this device is already in flight for another task.
void TaskMemory::AwaitInputs(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || use.fresh) continue;
    memory_->copies().AwaitInput(transaction, task, *use.buffer, task->queue->device);
  }
}

void TaskMemory::Pin(TenantTransaction&, Task& task) {
  if (std::exchange(task.memory.pinned, true)) return;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr) ++use.buffer->pin_count;
  }
  if (task.queue != nullptr) ++task.queue->num_holding;
}

// Returns whether the task had pinned its buffers.
bool TaskMemory::Unpin(TenantTransaction& transaction, Task& task) {
  if (!std::exchange(task.memory.pinned, false)) return false;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr) --use.buffer->pin_count;
  }
  if (task.queue != nullptr) --task.queue->num_holding;
  if (task.memory.scratch_bytes > 0)
    memory_->arenas().GiveBackScratch(transaction, *task.queue,
                                      std::exchange(task.memory.scratch_bytes, 0));
  return true;
}

void TaskMemory::Release(TenantTransaction& transaction, Task& task) {
  if (Unpin(transaction, task)) memory_->Changed(transaction);
  if (task.queue != nullptr) memory_->waiters().Leave(transaction, task);
}

void TaskMemory::ReleaseAbandoned(TenantTransaction& transaction,
                                  const DeviceQueue::InFlight& entry) {
  if (entry.held.empty()) return;
  for (const Use& use : entry.held) {
    if (use.buffer != nullptr) --use.buffer->pin_count;
  }
  DropFresh(entry.held);
  memory_->Changed(transaction);
}

void TaskMemory::DropFresh(absl::Span<const Use> uses) {
  for (const Use& use : uses) {
    if (use.buffer != nullptr && use.fresh) use.buffer->KeepOnly(-1);
  }
}

bool TaskMemory::WritesLoan(const Task& task) {
  return std::any_of(task.uses.begin(), task.uses.end(), [&](const Use& use) {
    return use.buffer != nullptr && use.buffer->num_loans > 0 &&
           (use.write || task.options.drop_other_replicas);
  });
}

}  // namespace stride::engine
