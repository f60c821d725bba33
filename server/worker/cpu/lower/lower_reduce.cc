#include <algorithm>
#include <utility>

#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/run_reduce.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// About 10 us of work: below that, waking a second thread costs more than it gains.
constexpr int64_t kLeastReduced = 128 << 10;

int64_t CountElements(const wire::ReduceLaunch& launch) {
  int64_t count = 1;
  for (const auto* extents : {&launch.kept_extents(), &launch.reduced_extents()}) {
    for (int64_t extent : *extents) count *= extent;
  }
  return count;
}

// An item may be one result of a long reduction: threads take items dynamically.
int64_t ReduceGrain(const wire::ReduceLaunch& launch, int64_t num_items, int num_threads) {
  const int64_t elements = std::max<int64_t>(CountElements(launch), 1);
  const int64_t least = (num_items * kLeastReduced + elements - 1) / elements;
  return std::max(least, num_items / (int64_t{num_threads} * 8) + 1);
}

absl::Status CheckLimits(const wire::ReduceLaunch& launch) {
  if (launch.kept_extents_size() + launch.reduced_extents_size() <= codegen::kMaxRank &&
      launch.inputs_size() < codegen::kMaxOperands &&
      launch.map_scalars_size() + launch.finish_scalars_size() <= codegen::kMaxScalars) {
    return absl::OkStatus();
  }
  return absl::InternalError("a reduction has more axes, inputs or scalars than its code can take");
}

}  // namespace

ReduceLoops FindReduceLoops(const LoadedModule& module) {
  return {module.FindLoop(codegen::kReduceEntry), module.FindLoop(codegen::kReduceFinishEntry)};
}

absl::Status RunReduce(cpucuda::ThreadPool& pool, const ReduceLoops& loops,
                       const codegen::ReduceShape& shape, const wire::ReduceLaunch& launch,
                       const std::vector<uint64_t>& addresses) {
  ScratchMemory scratch;
  if (shape.scratch_bytes > 0) {
    scratch = AllocateScratch(shape.scratch_bytes);
    if (!scratch)
      return absl::ResourceExhaustedError("no memory for a reduction's partial results");
  }
  codegen::LaunchBlock block =
      codegen::PackReduce(launch, shape, addresses, reinterpret_cast<uint64_t>(scratch.get()));
  pool.ParallelFor(
      shape.num_items, ReduceGrain(launch, shape.num_items, pool.num_threads()),
      [&](int64_t begin, int64_t end, int) { loops.reduce(block.data(), begin, end); });
  FinishReduce(pool, loops, shape, block);
  return absl::OkStatus();
}

void FinishReduce(cpucuda::ThreadPool& pool, const ReduceLoops& loops,
                  const codegen::ReduceShape& shape, const codegen::LaunchBlock& block) {
  if (!shape.two_passes) return;
  pool.ParallelFor(
      shape.kept_count, GrainFor(shape.kept_count, 4096, pool.num_threads()),
      [&](int64_t begin, int64_t end, int) { loops.finish(block.data(), begin, end); });
}

absl::StatusOr<Work> LowerReduce(const LoweringContext& context, const wire::ReduceLaunch& launch) {
  if (absl::Status s = CheckLimits(launch); !s.ok()) return s;
  std::vector<int64_t> extents(launch.kept_extents().begin(), launch.kept_extents().end());
  auto kept = NumElements(extents);
  if (!kept.ok()) return kept.status();
  if (*kept == 0) return NoWork();
  extents.insert(extents.end(), launch.reduced_extents().begin(), launch.reduced_extents().end());
  auto all = NumElements(extents);
  if (!all.ok()) return all.status();

  ReduceOperands operands{.num_elements = *all, .num_results = *kept};
  for (const wire::Operand& input : launch.inputs()) {
    // Without elements to reduce, none are checked: the loop gets the address but does not read it.
    auto place = *all > 0 ? context.arenas->Elements(input, extents)
                          : context.arenas->Bytes(input.arena(), input.offset(), 0);
    if (!place.ok()) return place.status();
    operands.addresses.push_back(place->bits());
    operands.places.push_back(*std::move(place));
  }
  auto output = context.arenas->Elements(launch.output(), launch.kept_extents());
  if (!output.ok()) return output.status();
  operands.addresses.push_back(output->bits());
  operands.places.push_back(*std::move(output));
  if (launch.has_by_blocks()) return LowerReduceByBlocks(context, launch, operands);

  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  const ReduceLoops loops = FindReduceLoops(**module);
  codegen::ReduceShape shape = codegen::PlanReduceCpu(launch);
  if (!loops.Fit(shape)) return absl::InternalError("the module is no reduction");
  Work work;
  work.operands = std::move(operands.places);
  work.run = [pool = context.pool, module = *module, loops, shape, launch,
              addresses = std::move(operands.addresses)] {
    return RunReduce(*pool, loops, shape, launch, addresses);
  };
  return work;
}

}  // namespace stride::cpu
