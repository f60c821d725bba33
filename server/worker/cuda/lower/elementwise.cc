#include "server/worker/cuda/lower/elementwise.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/ops/block_loops.h"
#include "server/worker/codegen/block_launch.h"

namespace stride::cuda {

absl::StatusOr<EmittedLaunch> PrepareByBlocks(const Lowering& lowering, KernelModule& loops,
                                              const wire::ElementwiseLaunch& launch,
                                              absl::Span<const uint64_t> addresses) {
  auto steps = codegen::PlanBlockSteps(launch);
  if (!steps.ok()) return steps.status();
  auto packed = codegen::PackBlocks(*steps, addresses, lowering.limits.num_multiprocessors);
  if (!packed.ok()) return packed.status();
  return PrepareEmitted(lowering, loops, ops::kBlocksEntry, packed->shape,
                        std::move(packed->block));
}

absl::StatusOr<std::optional<EmittedLaunch>> PrepareElementwise(
    const Lowering& lowering, KernelModule& module, const wire::ElementwiseLaunch& launch) {
  std::vector<uint64_t> addresses;
  addresses.reserve(launch.inputs_size() + launch.outputs_size());
  for (const auto* operands : {&launch.inputs(), &launch.outputs()}) {
    for (const wire::Operand& operand : *operands) {
      const bool peer = operands == &launch.inputs() && lowering.peers.Contains(operand.arena());
      const ArenaTable& table = peer ? lowering.peers : lowering.arenas;
      absl::StatusOr<CUdeviceptr> address = table.Address(operand, launch.extents());
      if (!address.ok()) return address.status();
      addresses.push_back(*address);
    }
  }
  const auto& extents = launch.extents();
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return std::nullopt;
  if (launch.has_by_blocks()) return PrepareByBlocks(lowering, module, launch, addresses);
  return PrepareEmitted(lowering, module, codegen::kElementwiseEntry,
                        codegen::ElementwiseShape(launch),
                        codegen::PackElementwise(launch, addresses));
}

absl::Status LowerElementwise(const Lowering& lowering, KernelModule& module,
                              const wire::ElementwiseLaunch& launch) {
  auto prepared = PrepareElementwise(lowering, module, launch);
  if (!prepared.ok() || !prepared->has_value()) return prepared.status();
  EmittedLaunch& only = **prepared;
  absl::Status launched = LaunchPrepared(lowering.driver, lowering.stream, only);
  if (only.marks()) lowering.end->told = launched.ok();
  return launched;
}

}  // namespace stride::cuda
