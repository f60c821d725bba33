// Runs a block whose kernel was compiled in the per-thread form: every thread is a fiber with a
// stack of its own.
//
// It is slower at barriers than the loop form (tens of nanoseconds for each thread and barrier),
// but supports all control flow: barriers under divergent control, votes and shuffles among any set
// of lanes.
#pragma once

#include <cstddef>
#include <vector>

#include "cpucuda/runtime/block_context.h"

namespace stride::cpucuda {

// The fibers of one operating system thread; kept between blocks and launches because stacks cost
// system calls.
class FiberBlock {
 public:
  enum class Outcome { kDone, kFailed, kNoMemory, kAtGridBarrier };

  FiberBlock() = default;
  ~FiberBlock();
  FiberBlock(const FiberBlock&) = delete;
  FiberBlock& operator=(const FiberBlock&) = delete;

  // Takes all fields of `block` except thread_index; its runtime must have the two functions below.
  // Returns when every thread has returned, or kFailed as soon as one has called Abandon.
  Outcome Run(const BlockContext& block, void (*kernel)(BlockContext*));

  // The same in steps, for a block of a cooperative launch. Begin returns false when memory is
  // exhausted. Resume runs until the block ends or waits for the grid, and continues there after
  // kAtGridBarrier. Any thread may call it, one at a time.
  bool Begin(const BlockContext& block, void (*kernel)(BlockContext*));
  Outcome Resume();

  // KernelRuntime::wait.
  static unsigned Wait(BlockContext* block, unsigned site, unsigned mask, bool whole_block);
  // KernelRuntime::wait_grid of a cooperative launch.
  static void WaitGrid(BlockContext* block);
  // Leaves the calling fiber and ends the block. Does not return. It is not declared noreturn: the
  // address sanitizer clears the stack before such calls and expects it at the thread's own stack.
  static void Abandon(BlockContext* block);

 private:
  enum class State { kReady, kAtBlockBarrier, kAtGridBarrier, kAtWarpBarrier, kDone };
  struct Fiber {
    BlockContext block;  // first: a kernel's context is its fiber
    FiberBlock* owner = nullptr;
    void* stack_pointer = nullptr;
    State state = State::kReady;
    unsigned site = 0;
    unsigned mask = 0;
    unsigned released = 0;  // lanes that were released together
  };

  static void Start();
  bool ReserveStacks(size_t count);
  void Prepare(const BlockContext& block, size_t count);
  bool RunWarp(size_t first, size_t count);
  bool ReleaseWarp(size_t first, size_t count);
  bool OpenBarrier(State barrier);
  unsigned Group(size_t first, size_t count, const Fiber& like) const;
  void Release(size_t first, unsigned lanes);
  void Leave(Fiber& fiber);

  std::vector<Fiber> fibers_;
  void (*kernel_)(BlockContext*) = nullptr;
  Fiber* current_ = nullptr;
  void* scheduler_ = nullptr;  // the stack pointer of the thread itself
  bool failed_ = false;
  unsigned char* stacks_ = nullptr;
  size_t num_stacks_ = 0;
};

}  // namespace stride::cpucuda
