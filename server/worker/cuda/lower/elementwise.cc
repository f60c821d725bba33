#include "server/worker/cuda/lower/elementwise.h"

#include <algorithm>
#include <vector>

namespace stride::cuda {

absl::StatusOr<std::optional<EmittedLaunch>> PrepareElementwise(
    const Lowering& lowering, KernelModule& module, const wire::ElementwiseLaunch& launch) {
  if (launch.has_by_blocks()) return absl::InternalError("no loop runs by blocks on a GPU");
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
