#pragma once

#include <optional>
#include <vector>

#include "server/wire/plan.pb.h"

// A reduction without compiled code of its own. Block loops (block_loops.h) write the values to
// memory contiguously, one of a few precompiled reductions combines them, and block loops compute
// the results. The order of combination equals that of the fused code, so results are equal bit for
// bit. Pure functions; any thread.
namespace stride::ops {

// How a device kind combines the reduced elements of one result, apart from their order.
enum class Runs {
  kEnd,   // a CPU device: a run ends with the innermost axis
  kNone,  // a GPU: all axes are one; the code depends on the elements per access of a thread
};

// The only inputs to the number of elements that a GPU thread loads at once (ChooseWidth in
// codegen's emit_reduce_cuda.cc).
struct TakenAtOnce {
  int64_t item_bytes = 0;   // element size of the array that determines the order
  bool contiguous = false;  // the reduced axes are contiguous in memory
};

// Returns the code of a reduction of values in memory. nullopt if the reduction cannot run by
// blocks: a client's function, a program as the combination, a mask, or a map that reads the index.
std::optional<wire::Code> PlainReduceCode(const wire::ReduceCode& code, Runs runs);

// The same code from its properties, for Runs::kEnd: along rows, or along adjacent columns.
wire::Code PlainReduceCode(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                           bool columns, uint32_t reduced_rank);
// The same for Runs::kNone, where `taken` is one of TakenBy.
wire::Code PlainReduceCode(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                           bool columns, const TakenAtOnce& taken);

// Returns the ways of loading elements that lead to different code for this combination and type on
// a GPU. One way suffices if the order changes no bit, as with integers. Extremes of elements that
// are first cast to floats are omitted.
std::vector<TakenAtOnce> TakenBy(wire::ReduceCode::Combine combine, int32_t accumulator_dtype,
                                 bool columns);

// Returns the additional launch fields for a module of that code; `loops` is the module of the
// block loops.
wire::ReduceLaunch::ByBlocks ReduceByBlocks(const wire::ReduceCode& code, uint64_t loops);

// The three launches of a reduction by blocks. Values are in C order of the kept and reduced axes,
// or with `columns` of the reduced and kept axes. Results are in C order of the kept axes.

// From the launch's inputs to the values, its only output.
wire::ElementwiseLaunch MapLaunch(const wire::ReduceLaunch& launch, bool columns);
// From the values to the results. Operands refer to slots 0 and 1.
wire::ReduceLaunch PlainReduceLaunch(const wire::ReduceLaunch& launch, Runs runs, bool columns);
// From the results to the launch's output.
wire::ElementwiseLaunch FinishLaunch(const wire::ReduceLaunch& launch);

}  // namespace stride::ops
