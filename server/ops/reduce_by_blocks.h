#pragma once

#include <optional>
#include <vector>

#include "server/wire/plan.pb.h"

// A reduction that runs without code of its own: block loops (block_loops.h) make the values that
// are accumulated and lay them one after another, a reduction of such values, of which there are
// few kinds, combines them, and block loops finish its results. Values are combined in the order
// that the fused code has, so results are equal to the bit. Pure functions; any thread.
namespace stride::ops {

// How a device kind combines the reduced elements of one result, beyond their order.
enum class Runs {
  kEnd,   // a CPU device: a run ends with the innermost axis
  kNone,  // a GPU: all axes are one; its code depends on the elements that a thread takes at once
};

// The elements that a GPU's thread takes at once depend on these alone (codegen's
// emit_reduce_cuda.cc, ChooseWidth).
struct TakenAtOnce {
  int64_t item_bytes = 0;   // of an element of the array that decides the order
  bool contiguous = false;  // its reduced axes are one run of memory
};

// The code of the reduction of values as they lie in memory. Nothing when the reduction does not
// run by blocks: a client's function, a combination that is a program, elements that take no part,
// a map that reads the index.
std::optional<wire::Code> PlainReduceCode(const wire::ReduceCode& code, Runs runs);

// The same from what it depends on, for Runs::kEnd: along rows, or along columns side by side.
wire::Code PlainReduceCode(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                           bool columns, uint32_t reduced_rank);
// The same for Runs::kNone, where `taken` is one of TakenBy.
wire::Code PlainReduceCode(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                           bool columns, const TakenAtOnce& taken);

// The ways of taking elements that make code of their own with this combination of this type, on a
// GPU. Where the order changes no bit, such as with integers, there is one. Extremes of elements
// that are cast to floats first are left out.
std::vector<TakenAtOnce> TakenBy(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                                 bool columns);

// The fields that a launch needs in addition to the module of that code: `loops` is the block
// loops' module.
wire::ReduceLaunch::ByBlocks ReduceByBlocks(const wire::ReduceCode& code, uint64_t loops);

// The three steps of a launch by blocks. Values lie in C order of the kept and reduced axes or,
// `columns`, of the reduced and kept axes; results in C order of the kept axes.

// From the launch's inputs to the values, its one output.
wire::ElementwiseLaunch MapLaunch(const wire::ReduceLaunch& launch, bool columns);
// From the values to results. Operands name slots 0 and 1.
wire::ReduceLaunch PlainReduceLaunch(const wire::ReduceLaunch& launch, Runs runs, bool columns);
// From the results to the launch's output.
wire::ElementwiseLaunch FinishLaunch(const wire::ReduceLaunch& launch);

}  // namespace stride::ops
