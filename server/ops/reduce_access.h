#pragma once

#include <cstdint>

#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

// Memory access of a reduction, derived only from its launch. The planner chooses the code and the
// device's launcher chooses the grid from the same functions, so that they agree.
namespace stride::ops {

// Returns whether the result is the index of an extreme value.
bool IsArg(wire::ReduceCode::Combine combine);

// Bytes of a partial result of moments: the longest record, complex128.
inline constexpr int64_t kRecordBytes = 48;

// Returns the type of input 0 of the code's `finish`.
DType FinishedType(wire::ReduceCode::Combine combine, DType accumulator);

// Returns the launch whose axes decide the division of work: the array's launch for computed
// elements.
const wire::ReduceLaunch& DecidingLaunch(const wire::ReduceLaunch& launch);

wire::Layout::Access ReducedAccess(const wire::ReduceLaunch& launch, int input);

// Returns the access along the axis of concurrently computed elements (ReduceCode.Computed).
wire::Layout::Access InnerAccess(const wire::ReduceLaunch& launch, int input);

// Returns whether threads should run along the innermost kept axis: it is contiguous in some input,
// and no input has contiguous reduced axes.
bool KeptContiguous(const wire::ReduceLaunch& launch);

// Returns whether the byte offsets of all operands fit 31 bits.
bool ReachFits32Bits(const wire::ReduceLaunch& launch);

}  // namespace stride::ops
