#include "server/worker/cuda/lower/elementwise.h"

#include <algorithm>
#include <vector>

#include "server/worker/cuda/lower/emitted.h"

namespace stride::cuda {

absl::Status LowerElementwise(const Lowering& lowering, KernelModule& module,
                              const wire::ElementwiseLaunch& launch) {
  std::vector<uint64_t> addresses;
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
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return absl::OkStatus();
  codegen::LaunchBlock block = codegen::PackElementwise(launch, addresses);
  return LaunchEmitted(lowering, module, codegen::kElementwiseEntry,
                       codegen::ElementwiseShape(launch), block);
}

}  // namespace stride::cuda
