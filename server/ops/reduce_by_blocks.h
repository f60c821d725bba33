#pragma once

#include <optional>

#include "server/wire/plan.pb.h"

// A reduction that runs without code of its own, on a CPU device: block loops (block_loops.h) make
// the values that are accumulated and lay them one after another, a reduction of such values, of
// which there are few kinds, combines them, and block loops finish its results. Values are combined
// in the order that the fused code has, so results are equal to the bit. Pure functions; any
// thread.
namespace stride::ops {

// The code of the reduction of values as they lie in memory. Nothing when the reduction does not
// run by blocks: a client's function, a combination that is a program, elements that take no part,
// a map that reads the index.
std::optional<wire::Code> PlainReduceCode(const wire::ReduceCode& code);

// The same from what it depends on: along rows, or along columns side by side.
wire::Code PlainReduceCode(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                           bool columns, uint32_t reduced_rank);

// The fields that a launch needs in addition to the module of that code: `loops` is the block
// loops' module.
wire::ReduceLaunch::ByBlocks ReduceByBlocks(const wire::ReduceCode& code, uint64_t loops);

// The launch of the reduction of values alone. They lie in C order of the kept and reduced axes,
// or, `columns`, of the reduced and kept axes; results in C order of the kept axes. Operands name
// slots 0 and 1.
wire::ReduceLaunch PlainReduceLaunch(const wire::ReduceLaunch& launch, bool columns);

}  // namespace stride::ops
