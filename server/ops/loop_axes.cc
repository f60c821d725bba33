#include "server/ops/loop_axes.h"

#include <algorithm>

#include "server/ops/shape.h"

namespace stride::ops {

std::vector<int> BroadcastAxes(const Shape& array, const Shape& shape) {
  const size_t lead = shape.size() - std::min(shape.size(), array.size());
  std::vector<int> axes(shape.size(), -1);
  for (size_t i = lead; i < shape.size(); ++i) {
    if (array[i - lead] == shape[i]) axes[i] = static_cast<int>(i - lead);
  }
  return axes;
}

absl::StatusOr<LoopAxes> DivideElementwise(const v1::Operation&,
                                           absl::Span<const SpreadArray> inputs,
                                           absl::Span<const Shape> outputs) {
  LoopAxes loop;
  for (const SpreadArray& input : inputs)
    loop.input_axes.push_back(BroadcastAxes(input.shape, outputs[0]));
  for (const auto& output : outputs) loop.output_axes.push_back(BroadcastAxes(output, outputs[0]));
  return loop;
}

absl::StatusOr<LoopAxes> Undivided(const v1::Operation&, absl::Span<const SpreadArray>,
                                   absl::Span<const Shape>) {
  return absl::UnimplementedError("");  // Divide names the array
}

}  // namespace stride::ops
