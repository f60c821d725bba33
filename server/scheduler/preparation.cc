// Scheduler: code, memory and inputs of a placed task, before the task is sent to its worker.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/ops/scratch_bytes.h"
#include "server/scheduler/hazards.h"
#include "server/scheduler/lent_for_reading.h"
#include "server/scheduler/out_of_memory.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {
namespace {

// The error of a device without memory, or of a machine that lacks the resources to map more.
absl::Status NoMemoryFor(const Lane& lane, uint64_t size, uint64_t scratch, uint64_t limit) {
  if (!lane.grow_lack.ok()) return lane.grow_lack;
  return OutOfMemory(lane.description.id(), size, limit, scratch);
}

// Adds the field of the launch that is at fault to a compiler's error.
absl::Status AtLaunch(const absl::Status& refusal, const v1::KernelLaunch& launch) {
  if (!absl::IsInvalidArgument(refusal)) return refusal;
  if (ReasonOf(refusal) == v1::ERROR_REASON_UNKNOWN_ENTRY) {
    for (int i = 0; i < launch.globals_size(); ++i) {
      if (MetadataOf(refusal, "entry") != "&" + launch.globals(i).name()) continue;
      return AtField(refusal, absl::StrCat("kernel_launch.globals[", i, "].name"),
                     "not in the code");
    }
    return AtField(refusal, "kernel_launch.entry", "not in the code");
  }
  return AtField(refusal, "kernel_launch.source", "does not compile");
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
  Lane& lane = *task->lane;
  if (!health_.Serves(lane.device)) {
    LeaveIllDevice(transaction, task);
    return;
  }
  if (!HaveCode(transaction, task) || !HaveArguments(transaction, task)) return;
  if (WritesLoan(*task)) {
    EndUnrun(transaction, task, LentForReading());
    return;
  }
  if (!HaveWorker(transaction, lane) || !HaveMemory(transaction, task)) return;
  task->queued_ready = true;
  // Ready tasks are independent of each other, so the queue is ordered by priority.
  auto less = [](const auto& a, const auto& b) { return a->priority > b->priority; };
  auto place = std::upper_bound(lane.ready.begin(), lane.ready.end(), task, less);
  if (place == lane.ready.end()) {
    lane.ready.push_back(task);  // insert into an empty deque would allocate at its front
  } else {
    lane.ready.insert(place, task);
  }
  PumpSoon(transaction, lane);
}

bool Scheduler::WritesLoan(const Task& task) {
  return std::any_of(task.uses.begin(), task.uses.end(), [&](const Use& use) {
    return use.buffer != nullptr && use.buffer->num_loans > 0 &&
           (use.write || task.drop_other_replicas);
  });
}

void Scheduler::PrepareAll(TenantTransaction& transaction, Lane& lane) {
  const std::vector<std::shared_ptr<Task>> tasks = lane.preparing.All();
  for (const auto& task : tasks) {
    if (task->lane == &lane) Prepare(transaction, task);
  }
}

bool Scheduler::HaveCode(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->replay != nullptr) return HaveReplay(transaction, task);
  if (!task->plan().code.has_value()) return true;
  const std::string& target = task->lane->description.target();
  if (task->module != nullptr && task->module->target == target) return true;
  PlannedCode& code = task->planned->codes[target];
  task->block_loops = nullptr;
  task->module = code.module.lock();
  if (task->module != nullptr) return true;
  if (code.ran_by_blocks == 0) {
    code.module = task->module =
        core_->broker->compiler().Lookup(task->tenant, target, *task->plan().code);
    if (task->module != nullptr) return true;
  }
  if (task->compile_requested) return false;
  auto loops = BlockLoopsFor(*task, target);
  if (loops != nullptr && RunByBlocks(*task, loops, target, code)) return true;
  task->compile_requested = true;
  task->compile_start = core_->Now();
  // After the transaction: the compiler may call back at once.
  std::optional<wire::Code> plain;
  if (loops != nullptr) plain = code.first_tier->plain_reduce;
  core_->executor.Run([this, task, target, loops, plain = std::move(plain)] {
    const wire::Code& wanted = plain.has_value() ? *plain : *task->plan().code;
    core_->broker->compiler().Compile(task->tenant, target, wanted, [=, this](auto module) {
      TenantTransaction transaction(*core_, task->tenant);
      task->compile_requested = false;
      task->compile_end = core_->Now();
      if (task->state != TaskState::kPreparing) return;
      if (!module.ok()) {
        EndUnrun(transaction, task,
                 task->kernel != nullptr
                     ? AtLaunch(module.status(), task->kernel->operation->kernel_launch())
                     : module.status());
        return;
      }
      task->module = *std::move(module);
      if (loops != nullptr) {
        task->planned->codes[target].plain = task->module;
        NoteRunByBlocks(*task, loops, target);
      }
      Prepare(transaction, task);
    });
  });
  return false;
}

// The loops on which an operation can run before its code is compiled. Null: it waits for its code,
// or its code was compiled with the product.
std::shared_ptr<const broker::CompiledModule> Scheduler::BlockLoopsFor(const Task& task,
                                                                       const std::string& target) {
  const wire::Code& code = *task.plan().code;
  if (!code.has_elementwise() && !code.has_reduce()) return nullptr;
  auto loops = core_->broker->compiler().BlockLoops(target);
  if (loops == nullptr) return nullptr;
  PlannedCode& planned = task.planned->codes[target];
  if (!planned.first_tier.has_value()) {
    FirstTier& tier = planned.first_tier.emplace(FirstTierOf(task.plan().task, code, *loops));
    // A plain reduction that has to be compiled would take as long as the code itself.
    tier.by_blocks =
        tier.by_blocks && (!tier.plain_reduce.has_value() ||
                           core_->broker->compiler().IsPrecompiled(target, *tier.plain_reduce));
  }
  if (!planned.first_tier->by_blocks) return nullptr;
  std::optional<bool>& is_precompiled = planned.is_precompiled;
  if (!is_precompiled.has_value())
    is_precompiled = core_->broker->compiler().IsPrecompiled(target, code);
  return *is_precompiled ? nullptr : loops;
}

// A plain reduction that has to be compiled would take as long as the code itself.
bool Scheduler::HasPlainReduction(const FirstTier& tier, const std::string& target) const {
  return !tier.plain_reduce.has_value() ||
         core_->broker->compiler().IsPrecompiled(target, *tier.plain_reduce);
}

// False: the plain reduction that the task needs is not compiled.
bool Scheduler::RunByBlocks(Task& task, std::shared_ptr<const broker::CompiledModule> loops,
                            const std::string& target, PlannedCode& code) {
  const std::optional<wire::Code>& plain = code.first_tier->plain_reduce;
  if (plain.has_value()) {
    task.module = code.plain.lock();
    if (task.module == nullptr) {
      code.plain = task.module = core_->broker->compiler().Lookup(task.tenant, target, *plain);
    }
    if (task.module == nullptr) return false;
  } else {
    task.module = loops;
  }
  NoteRunByBlocks(task, std::move(loops), target);
  return true;
}

// The elements that a plan ran by blocks decide when its code is worth a compilation.
void Scheduler::NoteRunByBlocks(Task& task, std::shared_ptr<const broker::CompiledModule> loops,
                                const std::string& target) {
  task.block_loops = std::move(loops);
  PlannedCode& code = task.planned->codes[target];
  code.ran_by_blocks += kLaunchElements + code.first_tier->elements;
  if (code.ran_by_blocks < kElementsWorthCode || std::exchange(code.requested, true)) return;
  // After the transaction: the compiler may call back at once.
  core_->executor.Run([this, planned = task.planned, tenant = task.tenant, target] {
    core_->broker->compiler().CompileLater(
        tenant, target, *planned->plan.code, [this, planned, tenant, target](auto module) {
          TenantTransaction transaction(*core_, tenant);
          PlannedCode& known = planned->codes[target];
          if (module.ok()) {
            known = {.module = *std::move(module), .first_tier = std::move(known.first_tier)};
          } else if (absl::IsUnavailable(
                         module.status())) {  // too many compilations are pending: try later
            known.ran_by_blocks = kLaunchElements;
            known.requested = false;
          }
        });
  });
}

bool Scheduler::HaveArguments(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  KernelArguments* const arguments = task->kernel.get();
  if (arguments == nullptr || arguments->bound) return true;
  const v1::KernelLaunch& launch = arguments->operation->kernel_launch();
  auto found = FindKernel(task->module->description, launch.entry());
  if (!found.ok()) {
    EndUnrun(transaction, task, found.status());
    return false;
  }
  const wire::KernelDescription* kernel = *found;
  auto bound = MakePlanned(task->plan());
  wire::Task* launched = &bound->plan.task;
  absl::Status status = ops::BindKernelArguments(launch, arguments->inputs, *kernel, launched);
  if (status.ok()) {
    status = ops::BindKernelGlobals(launch, arguments->inputs, task->module->description, launched);
  }
  if (!status.ok()) {
    EndUnrun(transaction, task, status);
    return false;
  }
  // Until now every array argument counted as written. Arguments that are pointers to const are
  // only read: a fault must not spoil their arrays.
  std::vector<bool> written(arguments->inputs.size(), false);
  for (int index : ops::WrittenOperands(launch, *kernel)) written[index] = true;
  for (size_t i = 0; i < arguments->inputs.size(); ++i) task->uses[i].write = written[i];
  if (WritesHeld(*task)) {
    EndUnrun(transaction, task, WritesInputOfBody(*task));
    return false;
  }
  task->planned = std::move(bound);
  arguments->bound = true;
  return true;
}

// Takes all the memory that the task lacks, or none. Two tasks that each held a part of theirs
// would wait for each other.
bool Scheduler::HaveMemory(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  Lane& lane = *task->lane;
  Buffers lacking;
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || BlockFor(*task, use, lane) != nullptr) continue;
    if (!use.fresh && moves_.count({use.buffer.get(), lane.device}) > 0) continue;
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
  LeaveMemoryQueue(transaction, *task);
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
  Lane& lane = *task->lane;
  if (task->holding || task->waits_memory || !lane.memory_queue.empty()) return false;
  if (BytesOf(*task) > memory_.limit_bytes(lane.device)) return false;
  absl::InlinedVector<store::Allocation, 3> blocks;
  for (const auto& buffer : lacking) {
    store::Allocation& block = blocks.emplace_back();
    const bool found =
        AllocateInPlace(transaction, *task, *buffer, &block) ||
        memory_.AllocateAtHand(transaction, lane, static_cast<uint64_t>(buffer->size), &block);
    if (found && (MakesWhole(*task, *buffer) || BytesAtHand(*buffer, block) != nullptr)) continue;
    if (!found) blocks.pop_back();
    for (const store::Allocation& taken : blocks) Memory::Free(transaction, lane, taken);
    return false;
  }
  lane.last_used = core_->Now();
  for (size_t i = 0; i < lacking.size(); ++i) FillAtHand(*task, *lacking[i], blocks[i]);
  return true;
}

bool Scheduler::AllocateInPlace(TenantTransaction& transaction, const Task& task,
                                const store::Buffer& buffer, store::Allocation* block) {
  const auto size = static_cast<uint64_t>(buffer.size);
  return buffer.passing && size <= kMaxInPlaceBytes && ReadsOnce(task) &&
         memory_.AllocateZeroCopy(transaction, *task.lane, size, block);
}

bool Scheduler::FillAtHand(Task& task, store::Buffer& buffer, const store::Allocation& block) {
  if (MakesWhole(task, buffer)) {
    buffer.AddReplica(task.lane->device, block);
    return true;
  }
  const void* const bytes = BytesAtHand(buffer, block);
  if (bytes == nullptr) return false;
  if (task.move_start == SteadyTime()) task.move_start = core_->Now();
  std::memcpy(block.data(), bytes, static_cast<size_t>(buffer.size));
  buffer.AddReplica(task.lane->device, block);
  task.move_end = core_->Now();
  account(task.lane->device).upload_bytes += buffer.size;
  return true;
}

bool Scheduler::TakeMemory(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                           const Buffers& lacking) {
  Lane& lane = *task->lane;
  uint64_t limit = memory_.limit_bytes(lane.device);
  const uint64_t scratch = CountedScratch(*task);
  uint64_t all = BytesOf(*task) + scratch;
  if (all > limit) {
    BeginStream(transaction, task, NoMemoryFor(lane, all, scratch, limit));
    return false;
  }
  LetGo(transaction,
        *task);  // a task that waits pins nothing, since others would wait for it
  if (!lane.memory_queue.empty() && lane.memory_queue.front() != task) {
    EnterMemoryQueue(transaction, task);
    if (lane.memory_queue.front() == task)
      MemoryChanged(transaction);  // its priority is the highest
    return false;
  }
  uint64_t turn = task->waits_memory ? task->memory_turn : UINT64_MAX;
  Hold(transaction, *task);  // its own buffers must not be evicted for it
  absl::InlinedVector<store::Allocation, 2> blocks(lacking.size());
  Memory::Outcome outcome = scratch == 0 ? Memory::Outcome::kAllocated
                                         : AllocateScratch(transaction, lane, scratch, turn);
  if (outcome == Memory::Outcome::kAllocated) task->scratch_bytes = scratch;
  size_t count = 0;
  while (outcome == Memory::Outcome::kAllocated && count < lacking.size()) {
    outcome = AllocateInPlace(transaction, *task, *lacking[count], &blocks[count])
                  ? Memory::Outcome::kAllocated
                  : Allocate(transaction, lane, static_cast<uint64_t>(lacking[count]->size), turn,
                             &blocks[count]);
    if (outcome != Memory::Outcome::kAllocated) break;
    ++count;
  }
  if (outcome != Memory::Outcome::kAllocated) {
    while (count > 0) Memory::Free(transaction, lane, blocks[--count]);
    Unhold(transaction, *task);
    if (outcome == Memory::Outcome::kFull && !MayComeFree(transaction, lane.device)) {
      EndUnrun(transaction, task, NoMemoryFor(lane, all, scratch, limit));
    } else {
      EnterMemoryQueue(transaction, task);
    }
    return false;
  }
  for (size_t i = 0; i < lacking.size(); ++i) {
    if (FillAtHand(*task, *lacking[i], blocks[i])) continue;
    ++task->num_moves;
    moves_[{lacking[i].get(), lane.device}].waiters.push_back(task);
    StartMove(transaction, task, lacking[i], blocks[i]);
  }
  return true;
}

uint64_t Scheduler::CountedScratch(const Task& task) const {
  const uint64_t bytes = ops::ScratchBytes(task.plan().task);
  return bytes > memory_.uncounted_scratch_bytes(task.lane->device) ? bytes : 0;
}

// Waits for inputs whose copy to this device is already in flight for another task.
void Scheduler::HaveInputs(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || use.fresh) continue;
    auto move = moves_.find({use.buffer.get(), task->lane->device});
    if (move == moves_.end()) continue;
    std::vector<std::shared_ptr<Task>>& waiters = move->second.waiters;
    if (std::find(waiters.begin(), waiters.end(), task) != waiters.end()) continue;
    ++task->num_moves;
    waiters.push_back(task);
  }
}

void Scheduler::Hold(TenantTransaction& transaction, Task& task) {
  if (std::exchange(task.holding, true)) return;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr) ++use.buffer->num_holders;
  }
  if (task.lane != nullptr) ++task.lane->num_holding;
}

bool Scheduler::Unhold(TenantTransaction& transaction, Task& task) {
  if (!std::exchange(task.holding, false)) return false;
  for (const Use& use : task.uses) {
    if (use.buffer != nullptr) --use.buffer->num_holders;
  }
  if (task.lane != nullptr) --task.lane->num_holding;
  if (task.scratch_bytes > 0)
    memory_.GiveBackScratch(transaction, *task.lane, std::exchange(task.scratch_bytes, 0));
  return true;
}

void Scheduler::LetGo(TenantTransaction& transaction, Task& task) {
  if (Unhold(transaction, task)) MemoryChanged(transaction);
}

void Scheduler::LetGo(TenantTransaction& transaction, store::Buffer& buffer) {
  --buffer.num_holders;
  MemoryChanged(transaction);
}

// Whether copies, arena growth or tasks in flight may release memory, without a call of a client.
bool Scheduler::MayComeFree(GlobalTransaction& transaction, int device) const {
  bool may = !moves_.empty();
  lanes_.ForEach(transaction, [&](const Lane& lane) {
    if (lane.device != device && core_->IsDevice(lane.device)) return;
    may = may || lane.growing || lane.num_holding > 0 || !lane.in_flight.empty();
  });
  return may;
}

void Scheduler::EnterMemoryQueue(GlobalTransaction& transaction,
                                 const std::shared_ptr<Task>& task) {
  if (std::exchange(task->waits_memory, true)) return;
  task->memory_turn = ++last_memory_turn_;
  ++num_memory_waiters_;
  auto less = [](const auto& a, const auto& b) { return a->priority > b->priority; };
  auto& queue = task->lane->memory_queue;
  queue.insert(std::upper_bound(queue.begin(), queue.end(), task, less), task);
}

void Scheduler::LeaveMemoryQueue(TenantTransaction& transaction, Task& task) {
  if (!std::exchange(task.waits_memory, false)) return;
  --num_memory_waiters_;
  task.lane->memory_queue.remove_if([&](const auto& other) { return other.get() == &task; });
  if (!task.lane->memory_queue.empty()) MemoryChanged(transaction);  // for the next in the queue
}

void Scheduler::MemoryChanged(TenantTransaction& transaction) {
  if (num_memory_waiters_.load(std::memory_order_relaxed) == 0) return;
  ++memory_changes_;
  if (retry_memory_soon_.exchange(true)) return;
  transaction.Defer([this] {
    GlobalTransaction transaction(*core_);
    RetryMemory(transaction);
  });
}

// The task that has waited longest is tried first. Others get free memory only if it is too little
// for that task.
void Scheduler::RetryMemory(GlobalTransaction& transaction) {
  retry_memory_soon_ = false;
  if (num_memory_waiters_ == 0) return;
  std::vector<Lane*> lanes;
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (!lane.memory_queue.empty()) lanes.push_back(&lane);
  });
  std::sort(lanes.begin(), lanes.end(), [](const Lane* a, const Lane* b) {
    return a->memory_queue.front()->memory_turn < b->memory_queue.front()->memory_turn;
  });
  for (Lane* lane : lanes) {
    while (!lane->memory_queue.empty()) {
      std::shared_ptr<Task> first = lane->memory_queue.front();
      Prepare(transaction, first);
      if (!lane->memory_queue.empty() && lane->memory_queue.front() == first) break;
    }
  }
}

}  // namespace stride::scheduler
