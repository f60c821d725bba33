#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cpu/lower/lowering.h"

namespace stride::cpu {
namespace {

// Below some 10 us of work, waking a second thread costs more than it brings.
constexpr int64_t kLeastElements = 16 << 10;

absl::Status CheckLimits(const wire::ElementwiseLaunch& launch) {
  if (launch.extents_size() <= codegen::kMaxRank && launch.scalars_size() <= codegen::kMaxScalars &&
      launch.inputs_size() + launch.outputs_size() <= codegen::kMaxOperands) {
    return absl::OkStatus();
  }
  return absl::InternalError("a loop has more axes, operands or scalars than its code can take");
}

}  // namespace

absl::StatusOr<Work> LowerElementwise(const LoweringContext& context,
                                      const wire::ElementwiseLaunch& launch) {
  if (absl::Status s = CheckLimits(launch); !s.ok()) return s;
  auto count = NumElements(launch.extents());
  if (!count.ok()) return count.status();
  if (*count == 0) return NoWork();
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  LoadedModule::Loop loop = (*module)->FindLoop(codegen::kRunEntry);
  if (loop == nullptr) return absl::InternalError("the module is no elementwise loop");

  Work work;
  std::vector<uint64_t> addresses;
  for (const auto* operands : {&launch.inputs(), &launch.outputs()}) {
    for (const wire::Operand& operand : *operands) {
      const bool peer = operands == &launch.inputs() && context.peers->Contains(operand.arena());
      const ArenaTable& table = peer ? *context.peers : *context.arenas;
      auto place = table.Elements(operand, launch.extents());
      if (!place.ok()) return place.status();
      addresses.push_back(place->bits());
      work.operands.push_back(*std::move(place));
    }
  }
  work.run = [pool = context.pool, module = *module, loop, count = *count,
              block = codegen::PackElementwise(launch, addresses)] {
    pool->ParallelFor(count, GrainFor(count, kLeastElements, pool->num_threads()),
                      [&](int64_t begin, int64_t end, int) { loop(block.data(), begin, end); });
    return absl::OkStatus();
  };
  return work;
}

}  // namespace stride::cpu
