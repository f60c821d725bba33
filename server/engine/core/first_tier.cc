#include "server/engine/core/first_tier.h"

#include <algorithm>

#include "server/ops/block_loops.h"
#include "server/ops/reduce_by_blocks.h"
#include "server/store/dtype.h"

namespace stride::engine {
namespace {

// Larger programs leave no room in a packet. A reduction by blocks writes the values that it
// combines: a GPU some at a time, a CPU device the values of some rows, or of all columns.
constexpr size_t kMaxProgramBytes = 32 << 10;
constexpr int64_t kMaxMappedBytes = 64 << 20;
constexpr int64_t kMappedRows = 256;  // from so many on, the CPU device cuts no row into parts

// The kernel of a GPU's loops, which takes a whole program as parameters. Null: a CPU device's.
const wire::KernelDescription* KernelOf(const broker::CompiledModule& loops) {
  for (const wire::KernelDescription& kernel : loops.description.kernels()) {
    if (kernel.entry() == ops::kBlocksEntry && kernel.parameters_size() > 0) return &kernel;
  }
  return nullptr;
}

bool FitsLoops(const wire::KernelDescription* kernel, const wire::ScalarProgram& program,
               int num_operands, int rank) {
  return kernel == nullptr || ops::BlockLaunchBytes(program, num_operands, rank) <=
                                  static_cast<int64_t>(kernel->parameters(0).size());
}

FirstTier FirstTierOfLoop(const wire::ElementwiseLaunch& launch, const wire::ScalarProgram& program,
                          const wire::KernelDescription* kernel) {
  FirstTier tier;
  tier.elements = 1;
  for (int64_t extent : launch.extents()) tier.elements *= extent;
  tier.by_blocks = ops::RunsByBlocks(program) &&
                   FitsLoops(kernel, program, launch.inputs_size() + launch.outputs_size(),
                             launch.extents_size());
  return tier;
}

FirstTier FirstTierOfReduction(const wire::ReduceLaunch& launch, const wire::ReduceCode& code,
                               const wire::KernelDescription* kernel) {
  FirstTier tier;
  tier.elements = 1;
  for (const auto* extents : {&launch.kept_extents(), &launch.reduced_extents()}) {
    for (int64_t extent : *extents) tier.elements *= extent;
  }
  const bool is_gpu = kernel != nullptr;
  tier.plain_reduce = ops::PlainReduceCode(code, is_gpu ? ops::Runs::kNone : ops::Runs::kEnd);
  const int64_t most = kMaxMappedBytes * (code.kept_contiguous() && !is_gpu ? 1 : kMappedRows);
  // A plain reduction's code counts elements by 32 bits.
  const int64_t most_elements = std::min<int64_t>(
      most / ItemSize(static_cast<DType>(code.accumulator_dtype())), int64_t{1} << 31);
  const int kept = launch.kept_extents_size(), rank = kept + launch.reduced_extents_size();
  tier.by_blocks = tier.plain_reduce.has_value() && tier.elements < most_elements &&
                   FitsLoops(kernel, code.map(), launch.inputs_size() + 1, std::max(rank, 1)) &&
                   FitsLoops(kernel, code.finish(), 2, std::max(kept, 1));
  return tier;
}

}  // namespace

FirstTier FirstTierOf(const wire::Task& task, const wire::Code& code,
                      const broker::CompiledModule& loops) {
  if (code.ByteSizeLong() > kMaxProgramBytes) return {};
  const wire::KernelDescription* const kernel = KernelOf(loops);
  if (code.has_elementwise())
    return FirstTierOfLoop(task.elementwise(), code.elementwise().program(), kernel);
  if (code.has_reduce()) return FirstTierOfReduction(task.reduce(), code.reduce(), kernel);
  return {};
}

}  // namespace stride::engine
