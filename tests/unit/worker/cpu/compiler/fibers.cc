#include "tests/unit/worker/cpu/compiler/fibers.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "server/worker/cpu/kernel/block_context.h"
#include "server/worker/cpu/kernel/block_scratch.h"

namespace stride::cpu {
namespace {

constexpr size_t kStackBytes = 128 << 10;

struct Fiber {
  enum State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  BlockContext block;
  State state = kReady;
  unsigned site = 0;
};

struct Scheduler {
  ucontext_t main;
  std::vector<Fiber> fibers;
  void* function;
};

thread_local Scheduler* running = nullptr;

void Wait(BlockContext* block, unsigned site, bool whole_block) {
  auto* fiber = static_cast<Fiber*>(block->launch);
  fiber->site = site;
  fiber->state = whole_block ? Fiber::kAtBlockBarrier : Fiber::kAtWarpBarrier;
  swapcontext(&fiber->context, &running->main);
}

int Print(BlockContext*, const char*, const PrintArgument*, unsigned) { return 0; }
void Fail(BlockContext*, const char*, const char*, unsigned, const unsigned*) { std::abort(); }
constexpr KernelRuntime kRuntime = {Print, Fail, Wait};

void Start(unsigned index) {
  Fiber& fiber = running->fibers[index];
  reinterpret_cast<void (*)(BlockContext*)>(running->function)(&fiber.block);
  fiber.state = Fiber::kDone;
  swapcontext(&fiber.context, &running->main);
}

// Threads at the earliest warp-wide point go on first; a block barrier opens when nobody waits
// anywhere else.
bool Release(Scheduler& scheduler) {
  unsigned first = ~0u;
  bool any = false;
  for (Fiber& fiber : scheduler.fibers) {
    any = any || fiber.state != Fiber::kDone;
    if (fiber.state == Fiber::kAtWarpBarrier) first = std::min(first, fiber.site);
  }
  for (Fiber& fiber : scheduler.fibers) {
    if (fiber.state == Fiber::kAtWarpBarrier && fiber.site == first) fiber.state = Fiber::kReady;
    if (fiber.state == Fiber::kAtBlockBarrier && first == ~0u) fiber.state = Fiber::kReady;
  }
  return any;
}

void RunBlock(Scheduler& scheduler, const BlockContext& common, const Dim3& size) {
  scheduler.fibers = std::vector<Fiber>(size_t{size.x} * size.y * size.z);
  for (unsigned i = 0; i < scheduler.fibers.size(); ++i) {
    Fiber& fiber = scheduler.fibers[i];
    fiber.stack = std::make_unique<char[]>(kStackBytes);
    fiber.block = common;
    fiber.block.launch = &fiber;
    fiber.block.thread_index[0] = i % size.x;
    fiber.block.thread_index[1] = i / size.x % size.y;
    fiber.block.thread_index[2] = i / size.x / size.y;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(Start), 1, i);
  }
  do {
    for (Fiber& fiber : scheduler.fibers) {
      if (fiber.state == Fiber::kReady) swapcontext(&scheduler.main, &fiber.context);
    }
  } while (Release(scheduler));
}

}  // namespace

bool RunWithFibers(const KernelEntry& kernel, const LaunchConfig& config, const void* parameters) {
  if (!CheckLaunch(kernel, config).ok()) return false;
  Scheduler scheduler;
  scheduler.function = kernel.function;
  running = &scheduler;
  BlockScratch shared, scratch;
  const Dim3 &grid = config.grid, &block = config.block;
  BlockContext common{
      .parameters = parameters,
      .shared = shared.Reserve(kernel.static_shared_bytes + config.dynamic_shared_bytes),
      .scratch = scratch.Reserve(
          ScratchBytes(kernel.private_bytes_per_thread, uint64_t{block.x} * block.y * block.z)),
      .runtime = &kRuntime,
      .grid = {grid.x, grid.y, grid.z},
      .block = {block.x, block.y, block.z},
      .dynamic_shared_bytes = config.dynamic_shared_bytes};
  for (unsigned i = 0; i < grid.x * grid.y * grid.z; ++i) {
    common.block_index[0] = i % grid.x;
    common.block_index[1] = i / grid.x % grid.y;
    common.block_index[2] = i / grid.x / grid.y;
    std::memset(
        common.scratch, 0,
        ScratchBytes(kernel.private_bytes_per_thread, uint64_t{block.x} * block.y * block.z));
    RunBlock(scheduler, common, block);
  }
  running = nullptr;
  return true;
}

}  // namespace stride::cpu
