#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cpu/lower/block_program.h"
#include "server/worker/cpu/lower/lowering.h"

// Common parts of fused reductions and reductions by blocks.
namespace stride::cpu {

struct ReduceLoops {
  LoadedModule::Loop reduce = nullptr;
  LoadedModule::Loop finish = nullptr;

  bool Fit(const codegen::ReduceShape& shape) const {
    return reduce != nullptr && (!shape.two_passes || finish != nullptr);
  }
};
ReduceLoops FindReduceLoops(const LoadedModule& module);

// `addresses`: those of the inputs, then the output. RESOURCE_EXHAUSTED when there is no memory for
// partial results.
absl::Status RunReduce(cpucuda::ThreadPool& pool, const ReduceLoops& loops,
                       const codegen::ReduceShape& shape, const wire::ReduceLaunch& launch,
                       const std::vector<uint64_t>& addresses);

// Combines partial results, if there are any. `block`: that of any part of the reduction.
void FinishReduce(cpucuda::ThreadPool& pool, const ReduceLoops& loops,
                  const codegen::ReduceShape& shape, const codegen::LaunchBlock& block);

// Computes elements [0, count) of the program on all threads. RESOURCE_EXHAUSTED when there is no
// memory for its blocks.
absl::Status RunByBlocks(cpucuda::ThreadPool& pool, const BlockProgram& program, int64_t count,
                         const std::vector<uint64_t>& addresses);

// Checked locations of a reduction's operands: inputs, then the output.
struct ReduceOperands {
  std::vector<uint64_t> addresses;
  std::vector<Place> places;
  int64_t num_elements = 0, num_results = 0;
};
absl::StatusOr<Work> LowerReduceByBlocks(const LoweringContext& context,
                                         const wire::ReduceLaunch& launch,
                                         const ReduceOperands& operands);

}  // namespace stride::cpu
