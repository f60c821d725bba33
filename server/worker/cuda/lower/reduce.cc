#include "server/worker/cuda/lower/reduce.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/worker/cuda/lower/emitted.h"
#include "server/worker/cuda/lower/reduce_by_blocks.h"

namespace stride::cuda {

absl::Status LowerReduce(const Lowering& lowering, KernelModule& module, KernelModule* loops,
                         const wire::ReduceLaunch& launch) {
  const auto& kept = launch.kept_extents();
  std::vector<int64_t> extents(kept.begin(), kept.end());
  extents.insert(extents.end(), launch.reduced_extents().begin(), launch.reduced_extents().end());
  std::vector<uint64_t> addresses;
  for (const wire::Operand& input : launch.inputs()) {
    absl::StatusOr<CUdeviceptr> address = lowering.arenas.Address(input, extents);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  absl::StatusOr<CUdeviceptr> output = lowering.arenas.Address(launch.output(), kept);
  if (!output.ok()) return output.status();
  addresses.push_back(*output);
  if (std::find(kept.begin(), kept.end(), 0) != kept.end()) return absl::OkStatus();
  if (launch.has_by_blocks())
    return LowerReduceByBlocks(lowering, module, *loops, launch, addresses);

  const codegen::ReduceShape shape =
      codegen::PlanReduceCuda(launch, lowering.limits.num_multiprocessors);
  uint64_t scratch = 0;
  if (shape.scratch_bytes > 0) {
    absl::StatusOr<CUdeviceptr> reserved = lowering.scratch.Reserve(shape.scratch_bytes);
    if (!reserved.ok()) return reserved.status();
    scratch = *reserved;
  }
  codegen::LaunchBlock block =
      codegen::PackReduce(launch, shape, addresses, scratch, lowering.scratch.arrivals());
  auto prepared =
      PrepareEmitted(lowering, module, codegen::kReduceEntry, shape.first, std::move(block));
  if (!prepared.ok()) return prepared.status();
  absl::Status launched = LaunchPrepared(lowering.driver, lowering.stream, *prepared);
  if (prepared->marks()) lowering.end->told = launched.ok();
  return launched;
}

}  // namespace stride::cuda
