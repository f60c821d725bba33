// Scheduler: memory and inputs of a placed task, before the task is sent to its worker.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/memory/lent_for_reading.h"
#include "server/engine/memory/out_of_memory.h"
#include "server/engine/scheduling/hazards.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/ops/scratch_bytes.h"

namespace stride::engine {
namespace {

// The error of a device without memory, or of a machine that lacks the resources to map more.
absl::Status NoMemoryFor(const DeviceQueue& queue, uint64_t size, uint64_t scratch,
                         uint64_t limit) {
  if (!queue.grow_lack.ok()) return queue.grow_lack;
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

void Scheduler::Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kPreparing || task->queued_ready) return;
  DeviceQueue& queue = *task->queue;
  if (!health_.Serves(queue.device)) {
    EvacuateUnhealthy(transaction, task);
    return;
  }
  if (!code_.Have(transaction, task)) return;
  if (WritesLoan(*task)) {
    EndUnrun(transaction, task, LentForReading());
    return;
  }
  if (queue.worker == nullptr) {
    starter_.Request(transaction, queue);
    return;
  }
  if (!HaveMemory(transaction, task)) return;
  task->queued_ready = true;
  // Ready tasks are independent of each other, so the queue is ordered by priority.
  auto less = [](const auto& a, const auto& b) { return a->priority > b->priority; };
  auto place = std::upper_bound(queue.ready.begin(), queue.ready.end(), task, less);
  if (place == queue.ready.end()) {
    queue.ready.push_back(task);  // insert into an empty deque would allocate at its front
  } else {
    queue.ready.insert(place, task);
  }
  PumpSoon(transaction, queue);
}

bool Scheduler::WritesLoan(const Task& task) {
  return std::any_of(task.uses.begin(), task.uses.end(), [&](const Use& use) {
    return use.buffer != nullptr && use.buffer->num_loans > 0 &&
           (use.write || task.drop_other_replicas);
  });
}

void Scheduler::PrepareAll(TenantTransaction& transaction, DeviceQueue& queue) {
  const std::vector<std::shared_ptr<Task>> tasks = queue.preparing.All();
  for (const auto& task : tasks) {
    if (task->queue == &queue) Prepare(transaction, task);
  }
}

// Takes all the memory that the task lacks, or none. Two tasks that each held a part of theirs
// would wait for each other.
bool Scheduler::HaveMemory(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  DeviceQueue& queue = *task->queue;
  Buffers lacking;
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || memory_.peers().BlockFor(*task, use, queue) != nullptr) continue;
    if (!use.fresh && memory_.copies().Has(transaction, *use.buffer, queue.device)) continue;
    if (std::find(lacking.begin(), lacking.end(), use.buffer) == lacking.end())
      lacking.push_back(use.buffer);
  }
  const bool has_scratch = task->scratch_bytes > 0 || CountedScratch(*task) == 0;
  const bool at_hand =
      has_scratch && (lacking.empty() || TakeMemoryAtHand(transaction, task, lacking));
  if (!at_hand) {
    GlobalTransaction* const global = transaction.global();
    if (global == nullptr) {
      PrepareWithAll(transaction, task);
      return false;
    }
    if (!TakeMemory(*global, task, lacking)) return false;
  }
  memory_.waiters().Leave(transaction, *task);
  Hold(transaction, *task);
  HaveInputs(transaction, task);
  return task->num_moves == 0;
}

void Scheduler::PrepareWithAll(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  transaction.Defer([this, task] {
    GlobalTransaction transaction(*core_);
    Prepare(transaction, task);
  });
}

// The common case of small operations: the device queue's arenas have free blocks, and inputs are
// inline. False: something is missing, and the state is unchanged.
bool Scheduler::TakeMemoryAtHand(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                                 const Buffers& lacking) {
  DeviceQueue& queue = *task->queue;
  if (task->holding || task->waits_memory || !queue.memory_queue.empty()) return false;
  if (BytesOf(*task) > memory_.arenas().limit_bytes(queue.device)) return false;
  absl::InlinedVector<store::Allocation, 3> blocks;
  for (const auto& buffer : lacking) {
    store::Allocation& block = blocks.emplace_back();
    const bool found = AllocateInPlace(transaction, *task, *buffer, &block) ||
                       memory_.arenas().AllocateAtHand(transaction, queue,
                                                       static_cast<uint64_t>(buffer->size), &block);
    if (found && (MakesWhole(*task, *buffer) || Migration::BytesAtHand(*buffer, block) != nullptr))
      continue;
    if (!found) blocks.pop_back();
    for (const store::Allocation& taken : blocks) Memory::Free(transaction, queue, taken);
    return false;
  }
  queue.last_used = core_->Now();
  for (size_t i = 0; i < lacking.size(); ++i) FillAtHand(*task, *lacking[i], blocks[i]);
  return true;
}

bool Scheduler::AllocateInPlace(TenantTransaction& transaction, const Task& task,
                                const store::Buffer& buffer, store::Allocation* block) {
  const auto size = static_cast<uint64_t>(buffer.size);
  return buffer.passing && size <= kMaxInPlaceBytes && ReadsOnce(task) &&
         memory_.arenas().AllocateZeroCopy(transaction, *task.queue, size, block);
}

bool Scheduler::FillAtHand(Task& task, store::Buffer& buffer, const store::Allocation& block) {
  if (MakesWhole(task, buffer)) {
    buffer.AddReplica(task.queue->device, block);
    return true;
  }
  const void* const bytes = Migration::BytesAtHand(buffer, block);
  if (bytes == nullptr) return false;
  if (task.move_start == SteadyTime()) task.move_start = core_->Now();
  std::memcpy(block.data(), bytes, static_cast<size_t>(buffer.size));
  buffer.AddReplica(task.queue->device, block);
  task.move_end = core_->Now();
  account(task.queue->device).upload_bytes += buffer.size;
  return true;
}

bool Scheduler::TakeMemory(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                           const Buffers& lacking) {
  DeviceQueue& queue = *task->queue;
  uint64_t limit = memory_.arenas().limit_bytes(queue.device);
  const uint64_t scratch = CountedScratch(*task);
  uint64_t all = BytesOf(*task) + scratch;
  if (all > limit) {
    out_of_core_.Begin(transaction, task, NoMemoryFor(queue, all, scratch, limit));
    return false;
  }
  LetGo(transaction,
        *task);  // a task that waits pins nothing, since others would wait for it
  if (!queue.memory_queue.empty() && queue.memory_queue.front() != task) {
    memory_.waiters().Enter(transaction, task);
    if (queue.memory_queue.front() == task)
      memory_.Changed(transaction);  // its priority is the highest
    return false;
  }
  uint64_t turn = task->waits_memory ? task->memory_turn : UINT64_MAX;
  Hold(transaction, *task);  // its own buffers must not be evicted for it
  absl::InlinedVector<store::Allocation, 2> blocks(lacking.size());
  Memory::Outcome outcome =
      scratch == 0 ? Memory::Outcome::kAllocated
                   : memory_.eviction().AllocateScratch(transaction, queue, scratch, turn);
  if (outcome == Memory::Outcome::kAllocated) task->scratch_bytes = scratch;
  size_t count = 0;
  while (outcome == Memory::Outcome::kAllocated && count < lacking.size()) {
    outcome = AllocateInPlace(transaction, *task, *lacking[count], &blocks[count])
                  ? Memory::Outcome::kAllocated
                  : memory_.eviction().Allocate(transaction, queue,
                                                static_cast<uint64_t>(lacking[count]->size), turn,
                                                &blocks[count]);
    if (outcome != Memory::Outcome::kAllocated) break;
    ++count;
  }
  if (outcome != Memory::Outcome::kAllocated) {
    while (count > 0) Memory::Free(transaction, queue, blocks[--count]);
    Unhold(transaction, *task);
    if (outcome == Memory::Outcome::kFull && !memory_.MayComeFree(transaction, queue.device)) {
      EndUnrun(transaction, task, NoMemoryFor(queue, all, scratch, limit));
    } else {
      memory_.waiters().Enter(transaction, task);
    }
    return false;
  }
  for (size_t i = 0; i < lacking.size(); ++i) {
    if (FillAtHand(*task, *lacking[i], blocks[i])) continue;
    memory_.migration().Start(transaction, task, lacking[i], blocks[i]);
  }
  return true;
}

uint64_t Scheduler::CountedScratch(const Task& task) const {
  const uint64_t bytes = ops::ScratchBytes(task.plan().task);
  return bytes > memory_.arenas().uncounted_scratch_bytes(task.queue->device) ? bytes : 0;
}

// Waits for inputs whose copy to this device is already in flight for another task.
void Scheduler::HaveInputs(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || use.fresh) continue;
    memory_.copies().AwaitInput(transaction, task, *use.buffer, task->queue->device);
  }
}

void Scheduler::Hold(TenantTransaction& transaction, Task& task) {
  if (std::exchange(task.holding, true)) return;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr) ++use.buffer->pin_count;
  }
  if (task.queue != nullptr) ++task.queue->num_holding;
}

bool Scheduler::Unhold(TenantTransaction& transaction, Task& task) {
  if (!std::exchange(task.holding, false)) return false;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr) --use.buffer->pin_count;
  }
  if (task.queue != nullptr) --task.queue->num_holding;
  if (task.scratch_bytes > 0)
    memory_.arenas().GiveBackScratch(transaction, *task.queue,
                                     std::exchange(task.scratch_bytes, 0));
  return true;
}

void Scheduler::LetGo(TenantTransaction& transaction, Task& task) {
  if (Unhold(transaction, task)) memory_.Changed(transaction);
}

}  // namespace stride::engine
