#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// A launch with `by_blocks`. `plain`: the module of ops::PlainReduceCode; `loops`: of the block
// loops. `addresses`: of the inputs, then the output. There is at least one result.
absl::Status LowerReduceByBlocks(const Lowering& lowering, KernelModule& plain, KernelModule& loops,
                                 const wire::ReduceLaunch& launch,
                                 absl::Span<const uint64_t> addresses);

}  // namespace stride::cuda
