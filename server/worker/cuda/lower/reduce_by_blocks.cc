#include "server/worker/cuda/lower/reduce_by_blocks.h"

#include <utility>

#include "server/ops/block_loops.h"
#include "server/store/dtype.h"
#include "server/worker/codegen/reduce_by_blocks_cuda.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/lower/emitted.h"

namespace stride::cuda {
namespace {

// Together with results and partial results this is less than Scratch keeps, and fits the
// second-level cache of a large device.
constexpr uint64_t kValueBytes = 32 << 20;

}  // namespace

absl::Status LowerReduceByBlocks(const Lowering& lowering, KernelModule& plain, KernelModule& loops,
                                 const wire::ReduceLaunch& launch,
                                 absl::Span<const uint64_t> addresses) {
  if (!DTypeFromNumber(launch.by_blocks().mapped_dtype()) ||
      !DTypeFromNumber(launch.by_blocks().accumulated_dtype()))
    return absl::InternalError("a reduction by blocks has no such type");
  const codegen::ReduceByBlocksCuda steps(launch, lowering.limits.num_multiprocessors, kValueBytes);
  CUdeviceptr scratch = 0;
  if (steps.scratch_bytes() > 0) {
    absl::StatusOr<CUdeviceptr> reserved = lowering.scratch.Reserve(steps.scratch_bytes());
    if (!reserved.ok()) return reserved.status();
    scratch = *reserved;
  }
  // A launch that is not the last marks no end.
  Lowering before = lowering;
  before.end = nullptr;
  const auto run = [&](codegen::BlocksStep& step) -> absl::Status {
    const bool reduces = step.kind == codegen::BlocksStep::Kind::kReduce;
    auto prepared = PrepareEmitted(step.last ? lowering : before, reduces ? plain : loops,
                                   reduces ? codegen::kReduceEntry : ops::kBlocksEntry, step.shape,
                                   std::move(step.block));
    if (!prepared.ok()) return prepared.status();
    absl::Status launched = LaunchPrepared(lowering.driver, lowering.stream, *prepared);
    if (prepared->marks()) lowering.end->told = launched.ok();
    return launched;
  };
  absl::Status status = steps.ForEachStep(addresses, scratch, lowering.scratch.arrivals(), run);
  if (!status.ok()) lowering.scratch.ClearArrivals();
  return status;
}

}  // namespace stride::cuda
