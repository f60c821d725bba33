#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/ops/reduce_access.h"
#include "server/ops/reduce_by_blocks.h"
#include "server/store/dtype.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/cpu/lower/block_program.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/run_reduce.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("a reduction by blocks is broken: ", what));
}

// A launch without the addresses of its operands.
struct Steps {
  std::shared_ptr<const BlockProgram> map;  // null: no elements
  std::shared_ptr<const BlockProgram> finish;
  ReduceLoops loops;
  wire::ReduceLaunch plain;
  codegen::ReduceShape shape;
  bool columns = false;
  int64_t num_elements = 0, num_results = 0;
  int64_t item = 1;  // bytes of a value
  uint64_t result_bytes = 0;

  uint64_t value_bytes() const { return static_cast<uint64_t>(num_elements * item); }
};

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("no memory for a reduction by blocks");
}

// Reduces columns: computes the values of all elements first, then their reduction.
absl::Status RunColumns(cpucuda::ThreadPool& pool, const Steps& steps,
                        std::vector<uint64_t> addresses, uint64_t results) {
  ScratchMemory memory = AllocateScratch(steps.value_bytes() + 1);
  if (!memory) return NoMemory();
  const auto values = reinterpret_cast<uint64_t>(memory.get());
  addresses.back() = values;
  if (steps.map != nullptr) {
    absl::Status status = RunByBlocks(pool, *steps.map, steps.num_elements, addresses);
    if (!status.ok()) return status;
  }
  return RunReduce(pool, steps.loops, steps.shape, steps.plain, {values, results});
}

// Reduces rows: each thread computes the values of a few items, which fit the cache, and combines
// them.
absl::Status RunRows(cpucuda::ThreadPool& pool, const Steps& steps, std::vector<uint64_t> addresses,
                     uint64_t results) {
  constexpr int64_t kAtOnce = codegen::kCpuChunk;
  const codegen::ReduceShape& shape = steps.shape;
  const int64_t reduced = steps.num_results == 0 ? 0 : steps.num_elements / steps.num_results;
  auto first_of = [&](int64_t item) {
    return item / shape.splits * reduced + std::min(item % shape.splits * shape.chunk, reduced);
  };
  const int64_t longest = std::min(shape.chunk, reduced);
  ScratchMemory partials = AllocateScratch(shape.scratch_bytes + 1);
  if (!partials) return NoMemory();
  const auto partials_at = reinterpret_cast<uint64_t>(partials.get());
  auto block_of = [&](uint64_t values) {
    return codegen::PackReduce(steps.plain, shape, {values, results}, partials_at);
  };
  std::atomic<bool> no_memory{false};
  const int64_t grain = shape.num_items / (int64_t{pool.num_threads()} * 8) + 1;
  pool.ParallelFor(shape.num_items, grain, [&](int64_t begin, int64_t end, int) {
    const int64_t most = std::min(std::max(longest, kAtOnce), first_of(end) - first_of(begin));
    ScratchMemory values = AllocateScratch(static_cast<uint64_t>(most * steps.item) + 1);
    ScratchMemory scratch =
        AllocateScratch((steps.map == nullptr ? 0 : steps.map->scratch_bytes()) + 1);
    if (!values || !scratch) {
      no_memory = true;
      return;
    }
    std::vector<uint64_t> places = addresses;
    for (int64_t from = begin, to = 0; from < end; from = to) {
      const int64_t first = first_of(from);
      for (to = from + 1; to < end && first_of(to + 1) - first <= most;) ++to;
      // The address that the value of element 0 would have.
      places.back() =
          reinterpret_cast<uint64_t>(values.get()) - static_cast<uint64_t>(first * steps.item);
      if (first_of(to) > first) steps.map->Run(places, first, first_of(to), scratch.get());
      steps.loops.reduce(block_of(places.back()).data(), from, to);
    }
  });
  if (no_memory) return NoMemory();
  FinishReduce(pool, steps.loops, shape, block_of(0));
  return absl::OkStatus();
}

// `addresses`: those of the inputs, then the output.
absl::Status Run(cpucuda::ThreadPool& pool, const Steps& steps,
                 const std::vector<uint64_t>& addresses) {
  ScratchMemory memory = AllocateScratch(steps.result_bytes + 1);
  if (!memory) return NoMemory();
  const auto results = reinterpret_cast<uint64_t>(memory.get());
  absl::Status status = steps.columns ? RunColumns(pool, steps, addresses, results)
                                      : RunRows(pool, steps, addresses, results);
  if (!status.ok()) return status;
  return RunByBlocks(pool, *steps.finish, steps.num_results, {results, addresses.back()});
}

}  // namespace

absl::StatusOr<Work> LowerReduceByBlocks(const LoweringContext& context,
                                         const wire::ReduceLaunch& launch,
                                         const ReduceOperands& operands) {
  if (!DTypeFromNumber(launch.by_blocks().mapped_dtype()) ||
      !DTypeFromNumber(launch.by_blocks().accumulated_dtype()))
    return Broken("a type");
  auto blocks = FindModule(context, launch.by_blocks().loops());
  if (!blocks.ok()) return blocks.status();
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  auto steps = std::make_shared<Steps>();
  steps->loops = FindReduceLoops(**module);
  const bool columns = steps->columns = ops::KeptContiguous(launch);
  steps->plain = ops::PlainReduceLaunch(launch, ops::Runs::kEnd, columns);
  steps->shape = codegen::PlanReduceCpu(steps->plain);
  if (columns != ops::KeptContiguous(steps->plain) || !steps->loops.Fit(steps->shape))
    return Broken("its module");
  steps->num_elements = operands.num_elements;
  steps->num_results = operands.num_results;
  steps->item = ItemSize(static_cast<DType>(launch.by_blocks().mapped_dtype()));
  steps->result_bytes = static_cast<uint64_t>(
      operands.num_results * ItemSize(static_cast<DType>(launch.by_blocks().accumulated_dtype())));
  if (operands.num_elements > 0) {
    auto map = BlockProgram::Create(ops::MapLaunch(launch, columns), **blocks);
    if (!map.ok()) return map.status();
    steps->map = *std::move(map);
  }
  auto finish = BlockProgram::Create(ops::FinishLaunch(launch), **blocks);
  if (!finish.ok()) return finish.status();
  steps->finish = *std::move(finish);
  Work work;
  work.operands = operands.places;
  work.run = [pool = context.pool, module = *module, blocks = *blocks, steps,
              addresses = operands.addresses] { return Run(*pool, *steps, addresses); };
  return work;
}

}  // namespace stride::cpu
