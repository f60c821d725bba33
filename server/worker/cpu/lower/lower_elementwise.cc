#include <atomic>
#include <utility>

#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cpu/lower/block_program.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/run_reduce.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// Below about 10 us of work, waking a second thread costs more than it gains.
constexpr int64_t kLeastElements = 16 << 10;

absl::Status CheckLimits(const wire::ElementwiseLaunch& launch) {
  if (launch.extents_size() <= codegen::kMaxRank && launch.scalars_size() <= codegen::kMaxScalars &&
      launch.inputs_size() + launch.outputs_size() <= codegen::kMaxOperands) {
    return absl::OkStatus();
  }
  return absl::InternalError("a loop has more axes, operands or scalars than its code can take");
}

}  // namespace

absl::Status RunByBlocks(cpucuda::ThreadPool& pool, const BlockProgram& program, int64_t count,
                         const std::vector<uint64_t>& addresses) {
  std::atomic<bool> no_memory{false};
  pool.ParallelFor(count, GrainFor(count, kLeastElements, pool.num_threads()),
                   [&](int64_t begin, int64_t end, int) {
                     // One byte more, since a program without slots needs none.
                     ScratchMemory scratch = AllocateScratch(program.scratch_bytes() + 1);
                     if (scratch) {
                       program.Run(addresses, begin, end, scratch.get());
                     } else {
                       no_memory = true;
                     }
                   });
  if (no_memory) return absl::ResourceExhaustedError("no memory for the blocks of an expression");
  return absl::OkStatus();
}

absl::StatusOr<Work> LowerElementwise(const LoweringContext& context,
                                      const wire::ElementwiseLaunch& launch) {
  if (absl::Status s = CheckLimits(launch); !s.ok()) return s;
  auto count = NumElements(launch.extents());
  if (!count.ok()) return count.status();
  if (*count == 0) return NoWork();
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();

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
  if (launch.has_by_blocks()) {
    auto program = BlockProgram::Create(launch, **module);
    if (!program.ok()) return program.status();
    work.run = [pool = context.pool, module = *module, program = *std::move(program),
                count = *count, addresses = std::move(addresses)] {
      return RunByBlocks(*pool, *program, count, addresses);
    };
    return work;
  }
  LoadedModule::Loop loop = (*module)->FindLoop(codegen::kRunEntry);
  if (loop == nullptr) return absl::InternalError("the module is no elementwise loop");
  work.run = [pool = context.pool, module = *module, loop, count = *count,
              block = codegen::PackElementwise(launch, addresses)] {
    pool->ParallelFor(count, GrainFor(count, kLeastElements, pool->num_threads()),
                      [&](int64_t begin, int64_t end, int) { loop(block.data(), begin, end); });
    return absl::OkStatus();
  };
  return work;
}

}  // namespace stride::cpu
