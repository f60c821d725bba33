#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/worker/codegen/block_steps.h"
#include "server/worker/codegen/launch_abi.h"

// The launch of the kernel that runs programs by blocks on a GPU (device/interpret.h, which
// declares the same layout). Pure functions; any thread.
namespace stride::codegen {

// The entry is `extern "C" __global__ void` ops::kBlocksEntry`(const bytes[kBlocksBytes], const
// EndMark)`. Older drivers accept 4,096 bytes of parameters. A second entry, for larger programs,
// would double the module, since each contains all loops.
inline constexpr int kBlocksBytes = 4000;

struct BlocksLaunch {
  LaunchShape shape;  // the slots are its shared memory
  LaunchBlock block;  // kBlocksBytes
};

// Elements of a program's loop, by their index in C order.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// `addresses`: first elements of the operands, inputs first. `range`: the elements that the launch
// computes, at least one; elements of operands outside of it need not exist. INTERNAL for a program
// that does not fit the parameters (ops::BlockLaunchBytes).
absl::StatusOr<BlocksLaunch> PackBlocks(const BlockSteps& steps,
                                        absl::Span<const uint64_t> addresses, ElementRange range,
                                        int num_multiprocessors);
// All elements.
absl::StatusOr<BlocksLaunch> PackBlocks(const BlockSteps& steps,
                                        absl::Span<const uint64_t> addresses,
                                        int num_multiprocessors);

}  // namespace stride::codegen
