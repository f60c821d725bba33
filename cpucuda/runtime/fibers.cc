#include "cpucuda/runtime/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#if !defined(__x86_64__)
#error "the CPU device's fibers are written for x86-64, as its compiler's target is"
#endif

namespace stride::cpucuda {
namespace {

constexpr size_t kPage = 4096;
// The lowest page is a guard: a thread that outgrows its stack faults. Large private arrays are not
// on it (see per_thread.cc).
constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kWarp = 32;

// Saves the registers that a call must preserve, stores the stack pointer in `*from` and continues
// at `to`. ucontext makes a system call, which costs a microsecond and which the sandbox forbids.
extern "C" void stride_cpu_switch_stack(void** from, void* to);
asm(R"(
.text
.p2align 4
.type stride_cpu_switch_stack, @function
stride_cpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size stride_cpu_switch_stack, .-stride_cpu_switch_stack
)");

// The block of `Start`; fibers never change threads.
thread_local FiberBlock* starting = nullptr;

}  // namespace

FiberBlock::~FiberBlock() {
  if (stacks_ != nullptr) munmap(stacks_, num_stacks_ * kStackBytes);
}

bool FiberBlock::ReserveStacks(size_t count) {
  if (count <= num_stacks_) return true;
  if (stacks_ != nullptr) munmap(stacks_, num_stacks_ * kStackBytes);
  num_stacks_ = 0;
  stacks_ = nullptr;
  void* fresh = mmap(nullptr, count * kStackBytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  stacks_ = static_cast<unsigned char*>(fresh);
  num_stacks_ = count;
  for (size_t i = 0; i < count; ++i) {
    if (mprotect(stacks_ + i * kStackBytes + kPage, kStackBytes - kPage, PROT_READ | PROT_WRITE) ==
        0)
      continue;
    munmap(stacks_, num_stacks_ * kStackBytes);
    num_stacks_ = 0;
    stacks_ = nullptr;
    return false;
  }
  return true;
}

void FiberBlock::Prepare(const BlockContext& block, size_t count) {
  fibers_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Fiber& fiber = fibers_[i];
    fiber = Fiber{.block = block, .owner = this};
    fiber.block.thread_index[0] = i % block.block[0];
    fiber.block.thread_index[1] = i / block.block[0] % block.block[1];
    fiber.block.thread_index[2] = i / block.block[0] / block.block[1];
    // Six registers without meaning yet, the return address, and a word that aligns the stack as
    // after a call.
    auto** top = reinterpret_cast<void**>(stacks_ + (i + 1) * kStackBytes);
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void*>(&FiberBlock::Start);
    fiber.stack_pointer = top - 8;
  }
}

void FiberBlock::Start() {
  FiberBlock& owner = *starting;
  Fiber& fiber = *owner.current_;
  owner.kernel_(&fiber.block);
  fiber.state = State::kDone;
  owner.Leave(fiber);
  std::abort();  // a finished fiber never continues
}

void FiberBlock::Leave(Fiber& fiber) { stride_cpu_switch_stack(&fiber.stack_pointer, scheduler_); }

unsigned FiberBlock::Wait(BlockContext* block, unsigned site, unsigned mask, bool whole_block) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(block);
  fiber.site = site;
  fiber.mask = mask;
  fiber.state = whole_block ? State::kAtBlockBarrier : State::kAtWarpBarrier;
  fiber.owner->Leave(fiber);
  return fiber.released;
}

void FiberBlock::WaitGrid(BlockContext* block) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(block);
  fiber.state = State::kAtGridBarrier;
  fiber.owner->Leave(fiber);
}

void FiberBlock::Abandon(BlockContext* block) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(block);
  fiber.owner->failed_ = true;
  fiber.owner->Leave(fiber);
  std::abort();
}

FiberBlock::Outcome FiberBlock::Run(const BlockContext& block, void (*kernel)(BlockContext*)) {
  return Begin(block, kernel) ? Resume() : Outcome::kNoMemory;
}

bool FiberBlock::Begin(const BlockContext& block, void (*kernel)(BlockContext*)) {
  size_t count = size_t{block.block[0]} * block.block[1] * block.block[2];
  if (!ReserveStacks(count)) return false;
  Prepare(block, count);
  kernel_ = kernel;
  failed_ = false;
  return true;
}

FiberBlock::Outcome FiberBlock::Resume() {
  const size_t count = fibers_.size();
  starting = this;
  OpenBarrier(State::kAtGridBarrier);
  do {
    for (size_t first = 0; first < count; first += kWarp) {
      if (!RunWarp(first, std::min(kWarp, count - first))) return Outcome::kFailed;
    }
  } while (OpenBarrier(State::kAtBlockBarrier));
  bool waiting = std::any_of(fibers_.begin(), fibers_.end(), [](const Fiber& fiber) {
    return fiber.state == State::kAtGridBarrier;
  });
  return waiting ? Outcome::kAtGridBarrier : Outcome::kDone;
}

// Runs until each lane has returned or waits for the block.
bool FiberBlock::RunWarp(size_t first, size_t count) {
  do {
    for (size_t i = first; i < first + count; ++i) {
      if (fibers_[i].state != State::kReady) continue;
      current_ = &fibers_[i];
      stride_cpu_switch_stack(&scheduler_, current_->stack_pointer);
      if (failed_) return false;
    }
  } while (ReleaseWarp(first, count));
  return true;
}

// The lanes that wait at the same place for the same lanes.
unsigned FiberBlock::Group(size_t first, size_t count, const Fiber& like) const {
  unsigned group = 0;
  for (size_t i = 0; i < count; ++i) {
    const Fiber& fiber = fibers_[first + i];
    bool same =
        fiber.state == State::kAtWarpBarrier && fiber.site == like.site && fiber.mask == like.mask;
    if (same) group |= 1u << i;
  }
  return group;
}

void FiberBlock::Release(size_t first, unsigned lanes) {
  for (size_t i = 0; i < kWarp; ++i) {
    if ((lanes >> i & 1) == 0) continue;
    fibers_[first + i].released = lanes;
    fibers_[first + i].state = State::kReady;
  }
}

// Releases groups whose mask is complete: all its lanes wait, except those that returned. When no
// group is complete, the lanes have mask 0, or the mask names lanes that will not come, which CUDA
// leaves undefined. Then the lanes at the earliest site continue together, as on a GPU that runs a
// warp in lockstep. So no lane waits for ever.
bool FiberBlock::ReleaseWarp(size_t first, size_t count) {
  unsigned alive = 0;
  for (size_t i = 0; i < count; ++i) {
    if (fibers_[first + i].state != State::kDone) alive |= 1u << i;
  }
  const Fiber* earliest = nullptr;
  bool released = false;
  for (size_t i = 0; i < count; ++i) {
    const Fiber& fiber = fibers_[first + i];
    if (fiber.state != State::kAtWarpBarrier) continue;
    if (earliest == nullptr || fiber.site < earliest->site) earliest = &fiber;
    if (fiber.mask == 0) continue;
    unsigned group = Group(first, count, fiber);
    if ((fiber.mask & alive & ~group) != 0) continue;
    Release(first, group);
    released = true;
  }
  if (released) return true;
  if (earliest == nullptr) return false;
  Release(first, Group(first, count, *earliest));
  return true;
}

// False when no thread waits there.
bool FiberBlock::OpenBarrier(State barrier) {
  bool waiting = false;
  for (Fiber& fiber : fibers_) {
    if (fiber.state != barrier) continue;
    fiber.state = State::kReady;
    waiting = true;
  }
  return waiting;
}

}  // namespace stride::cpucuda
