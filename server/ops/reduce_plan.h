#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/ops/plan.h"
#include "server/ops/program_builder.h"
#include "server/ops/shape.h"

namespace stride::ops {

// A reduction that is typed and whose operands are known.
struct ReduceSpec {
  std::vector<ArrayInfo> inputs;  // all of one shape, broadcast
  std::vector<bool> is_reduced;   // by axis
  bool keep_dims = false;
  wire::ReduceCode::Combine combine = wire::ReduceCode::COMBINE_UNSPECIFIED;
  std::optional<wire::ScalarProgram> combine_program;  // COMBINE_PROGRAM, with the next
  std::optional<wire::ScalarValue> identity;
  DType accumulator = DType::kBool;
  ProgramBuilder map, finish;
  Value mapped, finished;           // the latter is cast to the output's type
  std::optional<Value> takes_part;  // a bool of `map`; then `finish` may read the count, input 1
  ArrayInfo output;
  // Elements that are computed from the inputs are combined in the order of an array's elements.
  struct Computed {
    ArrayInfo array;              // C-contiguous, of the elements' type, in the inputs' shape
    std::vector<uint32_t> slots;  // places of the inputs among the operation's
    uint32_t output_slot = 0;
  };
  std::optional<Computed> computed;  // else input i is in slot i, and the output after them
};
Plan MakeReducePlan(ReduceSpec spec);

// Sets what the order of combination of computed elements depends on. `array`: the axes of an array
// of the elements, which the launch's divide, and the array as input 0.
void SetComputed(const wire::ReduceLaunch& array, wire::ReduceLaunch* launch,
                 wire::ReduceCode* code);

// The result's shape, and how many elements each of its own is made of.
struct ReducedShape {
  Shape result;
  int64_t kept_count = 1, reduced_count = 1;
};
ReducedShape ReduceShapeOf(absl::Span<const int64_t> shape, const std::vector<bool>& is_reduced,
                           bool keep_dims);

// The array as it appears in `shape`, to which it is known to broadcast.
ArrayInfo BroadcastTo(const ArrayInfo& array, const Shape& shape);

}  // namespace stride::ops
