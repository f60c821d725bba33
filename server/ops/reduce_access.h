#pragma once

#include <cstdint>

#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

// How a reduction walks memory, derived from its launch alone, so that the planner (which chooses
// the code) and the device's launcher (which chooses the grid) agree by construction.
namespace stride::ops {

// Whether the result is the place of an extreme.
bool IsArg(wire::ReduceCode::Combine combine);

// Bytes of a partial result that is a record of moments: that of complex128, the longest.
inline constexpr int64_t kRecordBytes = 48;

// The type of input 0 of the code's `finish`.
DType FinishedType(wire::ReduceCode::Combine combine, DType accumulator);

// The launch whose axes decide how the work is cut: that of the array, for computed elements.
const wire::ReduceLaunch& DecidingLaunch(const wire::ReduceLaunch& launch);

wire::Layout::Access ReducedAccess(const wire::ReduceLaunch& launch, int input);

// The access along the axis whose elements are computed side by side (ReduceCode.Computed).
wire::Layout::Access InnerAccess(const wire::ReduceLaunch& launch, int input);

// Threads should go along the innermost kept axis: it is contiguous in some input, and no input has
// its reduced axes as one contiguous run.
bool KeptContiguous(const wire::ReduceLaunch& launch);

// Whether byte offsets of all operands fit 31 bits.
bool ReachFits32Bits(const wire::ReduceLaunch& launch);

}  // namespace stride::ops
