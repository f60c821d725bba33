#include "cpucuda/runtime/launch.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cpucuda/runtime/block_context.h"
#include "cpucuda/runtime/block_scratch.h"
#include "cpucuda/runtime/device_heap.h"
#include "cpucuda/runtime/device_print.h"
#include "cpucuda/runtime/fault.h"
#include "cpucuda/runtime/fibers.h"

namespace stride::cpucuda {
namespace {

constexpr size_t kSharedAlignment = 128;

struct LaunchState {
  const KernelEntry& kernel;
  const LaunchConfig& config;
  const void* parameters;
  const std::atomic<bool>* cancel;
  PrintedText* printed;
  std::atomic<bool> stop{false};
  std::atomic<bool> cancelled{false};
  std::mutex mutex;  // guards error and printed
  absl::Status error;

  void SetError(absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex);
    if (error.ok()) error = std::move(status);
    stop = true;
  }
};

struct ThreadState {
  LaunchState* launch;
  internal::FaultExit exit;
};

int Print(BlockContext* block, const char* format, const PrintArgument* arguments,
          unsigned num_arguments) {
  LaunchState& launch = *static_cast<ThreadState*>(block->launch)->launch;
  if (format == nullptr) return -1;
  const int result = static_cast<int>(num_arguments);  // unlike C's, which counts bytes
  if (launch.printed == nullptr) return result;
  std::lock_guard<std::mutex> lock(launch.mutex);
  PrintedText& printed = *launch.printed;
  const size_t before = printed.text.size();
  if (printed.dropped_lines == 0 &&
      FormatDevicePrint(format, arguments, num_arguments, kMaxPrintedBytes, printed.text)) {
    return result;
  }
  // A call's text is kept whole or dropped; a call without an end of line counts as a line too.
  printed.text.resize(before);
  const std::string_view text = format;
  const auto lines = std::count(text.begin(), text.end(), '\n');
  printed.dropped_lines += static_cast<uint64_t>(std::max<int64_t>(lines, 1));
  return result;
}

internal::FaultExit& NoteFailure(BlockContext* block, const char* what, const char* file,
                                 unsigned line, const unsigned* thread) {
  internal::FaultExit& exit = static_cast<ThreadState*>(block->launch)->exit;
  Dim3 index{block->block_index[0], block->block_index[1], block->block_index[2]};
  exit.message = internal::DescribeFailure(what, file, line, index, thread);
  return exit;
}

// Compiled kernels have no destructors and hold no locks, so a jump out of them leaks nothing.
void LeaveBlock(BlockContext* block, const char* what, const char* file, unsigned line,
                const unsigned* thread) {
  longjmp(NoteFailure(block, what, file, line, thread).landing, 1);
}

void LeaveFibers(BlockContext* block, const char* what, const char* file, unsigned line,
                 const unsigned* thread) {
  NoteFailure(block, what, file, line, thread);
  FiberBlock::Abandon(block);
}

void RefuseGridWait(BlockContext* block) {
  LeaveFibers(block, "this_grid().sync() in a launch that is not cooperative", nullptr, 0,
              block->thread_index);
}

void* Allocate(BlockContext*, unsigned long bytes) { return DeviceHeap::Get().Allocate(bytes); }
bool Release(BlockContext*, void* memory) { return DeviceHeap::Get().Release(memory); }

constexpr KernelRuntime kRuntime = {Print, LeaveBlock, nullptr, nullptr, Allocate, Release};
constexpr KernelRuntime kFiberRuntime = {Print,          LeaveFibers, FiberBlock::Wait,
                                         RefuseGridWait, Allocate,    Release};
constexpr KernelRuntime kGridRuntime = {
    Print, LeaveFibers, FiberBlock::Wait, FiberBlock::WaitGrid, Allocate, Release};

const KernelRuntime* RuntimeFor(const LaunchState& launch) {
  if (!launch.kernel.per_thread) return &kRuntime;
  return launch.config.cooperative ? &kGridRuntime : &kFiberRuntime;
}

absl::Status NoStacks(const LaunchState& launch) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "kernel `", launch.kernel.name, "`: no memory for the stacks of a block's threads"));
}

struct ThreadMemory {
  BlockScratch shared;
  BlockScratch scratch;
  FiberBlock fibers;
};

ThreadMemory& Memory() {
  static thread_local ThreadMemory memory;
  return memory;
}

// Runs one block; leaves by the thread's landing when a thread of the block failed.
void RunBlock(BlockContext& context, LaunchState& launch) {
  auto function = reinterpret_cast<void (*)(BlockContext*)>(launch.kernel.function);
  if (!launch.kernel.per_thread) {
    function(&context);
    return;
  }
  FiberBlock::Outcome outcome = Memory().fibers.Run(context, function);
  if (outcome == FiberBlock::Outcome::kDone) return;
  if (outcome == FiberBlock::Outcome::kNoMemory) {
    launch.SetError(NoStacks(launch));
    return;
  }
  longjmp(static_cast<ThreadState*>(context.launch)->exit.landing, 1);
}

void SetIndex(BlockContext& context, const Dim3& grid, int64_t i) {
  context.block_index[0] = static_cast<unsigned>(i % grid.x);
  context.block_index[1] = static_cast<unsigned>(i / grid.x % grid.y);
  context.block_index[2] = static_cast<unsigned>(i / grid.x / grid.y);
  internal::EnterBlock({context.block_index[0], context.block_index[1], context.block_index[2]});
}

// Whether the launch continues.
bool GoesOn(LaunchState& launch) {
  if (launch.stop.load(std::memory_order_relaxed)) return false;
  if (launch.cancel == nullptr || !launch.cancel->load(std::memory_order_relaxed)) return true;
  launch.cancelled = launch.stop = true;
  return false;
}

// Runs blocks [begin, end) with `context` otherwise filled in. It has its own frame, so that no
// local has changed when a jump out of a kernel lands here.
void RunBlocks(BlockContext& context, LaunchState& launch, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end && GoesOn(launch); ++i) {
    SetIndex(context, launch.config.grid, i);
    RunBlock(context, launch);
  }
}

bool Fill(BlockContext& context, ThreadState& thread, BlockScratch& shared, BlockScratch& scratch,
          LaunchState& launch) {
  const Dim3& grid = launch.config.grid;
  const Dim3& block = launch.config.block;
  uint64_t num_threads = uint64_t{block.x} * block.y * block.z;
  size_t shared_bytes =
      launch.kernel.static_shared_bytes + launch.config.dynamic_shared_bytes + kSharedAlignment;
  const size_t scratch_bytes = ScratchBytes(launch.kernel.private_bytes_per_thread, num_threads);
  context = BlockContext{
      .parameters = launch.parameters,
      .shared = shared.Reserve(shared_bytes),
      .scratch = scratch.Reserve(scratch_bytes),
      .runtime = RuntimeFor(launch),
      .grid = {grid.x, grid.y, grid.z},
      .block = {block.x, block.y, block.z},
      .dynamic_shared_bytes = launch.config.dynamic_shared_bytes,
      .shared_bytes = launch.kernel.static_shared_bytes + launch.config.dynamic_shared_bytes,
      .cooperative = launch.config.cooperative,
      .launch = &thread};
  if (context.shared == nullptr || context.scratch == nullptr) return false;
  context.scratch_end = context.scratch + scratch_bytes;
  return true;
}

void RunOnThread(LaunchState& launch, int64_t begin, int64_t end) {
  if (launch.stop.load(std::memory_order_relaxed)) return;
  BlockContext context;
  ThreadState thread{.launch = &launch};
  if (!Fill(context, thread, Memory().shared, Memory().scratch, launch)) {
    launch.SetError(absl::ResourceExhaustedError("no memory for a block's private values"));
    return;
  }
  internal::EnterKernel();
  if (setjmp(thread.exit.landing) == 0) {
    RunBlocks(context, launch, begin, end);
  } else {
    launch.SetError(absl::AbortedError(
        absl::StrCat("kernel `", launch.kernel.name, "`: ", thread.exit.message)));
  }
  internal::LeaveKernel();
}

// A block of a cooperative launch whose threads are fibers. All blocks exist at once.
struct GridBlock {
  BlockContext context;
  ThreadState thread;
  BlockScratch shared, scratch;
  FiberBlock fibers;
  bool started = false, done = false;
};

bool Start(GridBlock& block, LaunchState& launch, int64_t index) {
  block.started = true;
  block.thread.launch = &launch;
  if (!Fill(block.context, block.thread, block.shared, block.scratch, launch)) return false;
  SetIndex(block.context, launch.config.grid, index);
  return block.fibers.Begin(block.context,
                            reinterpret_cast<void (*)(BlockContext*)>(launch.kernel.function));
}

// Runs to the next barrier of the grid, or to the end.
void Step(GridBlock& block, LaunchState& launch, int64_t index) {
  if (block.done || !GoesOn(launch)) return;
  if (!block.started && !Start(block, launch, index)) {
    launch.SetError(NoStacks(launch));
    return;
  }
  internal::EnterKernel();
  SetIndex(block.context, launch.config.grid, index);
  FiberBlock::Outcome outcome = block.fibers.Resume();
  internal::LeaveKernel();
  block.done = outcome != FiberBlock::Outcome::kAtGridBarrier;
  if (outcome != FiberBlock::Outcome::kFailed) return;
  launch.SetError(absl::AbortedError(
      absl::StrCat("kernel `", launch.kernel.name, "`: ", block.thread.exit.message)));
}

// The barrier is where the pool has made one step of each block.
void RunCooperative(ThreadPool& pool, LaunchState& launch, int64_t num_blocks) {
  std::vector<std::unique_ptr<GridBlock>> blocks(num_blocks);
  for (auto& block : blocks) block = std::make_unique<GridBlock>();
  bool waiting = true;
  while (waiting && !launch.stop) {
    pool.ParallelFor(num_blocks, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) Step(*blocks[i], launch, i);
    });
    waiting =
        std::any_of(blocks.begin(), blocks.end(), [](const auto& block) { return !block->done; });
  }
}

// Pieces large enough that fetching one costs nothing, small enough that threads end together.
int64_t Grain(int64_t num_blocks, int num_threads) {
  return std::clamp<int64_t>(num_blocks / (num_threads * 16), 1, 64);
}

}  // namespace

absl::Status Launch(ThreadPool& pool, const KernelEntry& kernel, const LaunchConfig& config,
                    const void* packed_parameters, const std::atomic<bool>* cancel,
                    PrintedText* printed) {
  if (absl::Status status = CheckLaunch(kernel, config); !status.ok()) return status;
  LaunchState launch{kernel, config, packed_parameters, cancel, printed};
  int64_t num_blocks = int64_t{config.grid.x} * config.grid.y * config.grid.z;
  if (config.cooperative && kernel.per_thread) {
    RunCooperative(pool, launch, num_blocks);
  } else {
    pool.ParallelFor(num_blocks, Grain(num_blocks, pool.num_threads()),
                     [&](int64_t begin, int64_t end, int) { RunOnThread(launch, begin, end); });
  }
  if (!launch.error.ok()) return launch.error;
  if (launch.cancelled)
    return absl::CancelledError(absl::StrCat("kernel `", kernel.name, "` was cancelled"));
  return absl::OkStatus();
}

}  // namespace stride::cpucuda
