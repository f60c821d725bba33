#include "server/worker/cpu/kernel/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <vector>

namespace stride::cpu {
namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kGuardBytes = 4096;
// A guard page splits a mapping in two, and a process may have some 65,000: the first fibers of
// each thread get one.
constexpr size_t kMaxGuards = 256;

// Stacks of one operating system thread, handed out by index; grows to the largest block that it
// ran.
class Stacks {
 public:
  ~Stacks() {
    for (std::byte* stack : stacks_) munmap(stack, kStackBytes);
  }
  bool Reserve(size_t count) {
    while (stacks_.size() < count) {
      void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) return false;
      // Without a guard an overflow is not noticed; that is worse for its kernel and for nobody
      // else.
      if (stacks_.size() < kMaxGuards) mprotect(memory, kGuardBytes, PROT_NONE);
      stacks_.push_back(static_cast<std::byte*>(memory));
    }
    return true;
  }
  void* Top(size_t index) const { return stacks_[index] + kStackBytes; }

 private:
  std::vector<std::byte*> stacks_;
};

struct Fiber {
  enum State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };
  fcontext_t context = nullptr;
  BlockContext block;
  State state = kReady;
  unsigned site = 0;
};

struct Runner {
  Stacks stacks;
  std::vector<Fiber> fibers;
  void (*function)(BlockContext*) = nullptr;
  Fiber* current = nullptr;        // null: no fiber runs
  fcontext_t scheduler = nullptr;  // where the current fiber goes back to
};

thread_local Runner runner;

void Stop() {
  Fiber* fiber = runner.current;
  transfer_t back = jump_fcontext(runner.scheduler, nullptr);
  runner.scheduler = back.fctx;
  runner.current = fiber;
}

void Start(transfer_t from) {
  runner.scheduler = from.fctx;
  Fiber& fiber = *runner.current;
  runner.function(&fiber.block);
  fiber.state = Fiber::kDone;
  Stop();
}

void Resume(Fiber& fiber) {
  runner.current = &fiber;
  fiber.context = jump_fcontext(fiber.context, nullptr).fctx;
  runner.current = nullptr;
}

// Threads at the earliest warp-wide point go on first; a block barrier opens when nobody waits
// anywhere else. False: all are done.
bool Release() {
  unsigned first = ~0u;
  bool any = false;
  for (const Fiber& fiber : runner.fibers) {
    any = any || fiber.state != Fiber::kDone;
    if (fiber.state == Fiber::kAtWarpBarrier) first = std::min(first, fiber.site);
  }
  for (Fiber& fiber : runner.fibers) {
    if (fiber.state == Fiber::kAtWarpBarrier && fiber.site == first) fiber.state = Fiber::kReady;
    if (fiber.state == Fiber::kAtBlockBarrier && first == ~0u) fiber.state = Fiber::kReady;
  }
  return any;
}

}  // namespace

void WaitInFiber(BlockContext*, unsigned site, bool whole_block) {
  if (runner.current == nullptr) return;
  runner.current->site = site;
  runner.current->state = whole_block ? Fiber::kAtBlockBarrier : Fiber::kAtWarpBarrier;
  Stop();
}

absl::Status RunBlockAsFibers(void (*function)(BlockContext*), const BlockContext& common) {
  size_t count = size_t{common.block[0]} * common.block[1] * common.block[2];
  if (!runner.stacks.Reserve(count)) {
    return absl::ResourceExhaustedError(
        "no memory for the stacks of a block's threads; use smaller blocks");
  }
  runner.function = function;
  runner.current = nullptr;
  runner.fibers.assign(count, Fiber());
  for (size_t i = 0; i < count; ++i) {
    Fiber& fiber = runner.fibers[i];
    fiber.block = common;
    fiber.block.thread_index[0] = static_cast<unsigned>(i % common.block[0]);
    fiber.block.thread_index[1] = static_cast<unsigned>(i / common.block[0] % common.block[1]);
    fiber.block.thread_index[2] = static_cast<unsigned>(i / common.block[0] / common.block[1]);
    fiber.context = make_fcontext(runner.stacks.Top(i), kStackBytes - kGuardBytes, Start);
  }
  do {
    for (Fiber& fiber : runner.fibers) {
      if (fiber.state == Fiber::kReady) Resume(fiber);
    }
  } while (Release());
  return absl::OkStatus();
}

}  // namespace stride::cpu
