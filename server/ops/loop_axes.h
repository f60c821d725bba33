#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "stride/v1/operation.pb.h"

// Which axes of an operation's arrays go together, for its division over devices. Pure functions;
// any thread.
namespace stride::ops {

// How an array is spread: split along `axis` as numpy.array_split does, or a copy on each device.
struct Spread {
  int axis = 0;  // in [0, rank); 0 when replicated
  bool replicated = false;
  std::vector<int> devices;  // in the order of the parts
  bool operator==(const Spread&) const = default;
};

// An array of an operation: how it is spread, or null: it is in one piece.
struct SpreadArray {
  const Spread* spread = nullptr;
  std::vector<int64_t> shape;  // the whole's; a scalar has no axes
  std::string field;           // path within the Operation
};

// Axes of an operation's loop by number, and which axis of an array goes along each; -1: none.
struct LoopAxes {
  std::vector<std::vector<int>> input_axes;   // for each input, by loop axis
  std::vector<std::vector<int>> output_axes;  // for each output; -1: the axis is summed over
};

// A kind's rule: its loop for these arrays. `outputs`: shapes of the whole's results.
using DivideRule = absl::StatusOr<LoopAxes> (*)(const v1::Operation& operation,
                                                absl::Span<const SpreadArray> inputs,
                                                absl::Span<const std::vector<int64_t>> outputs);
// Every array broadcasts to the first output.
absl::StatusOr<LoopAxes> DivideElementwise(const v1::Operation& operation,
                                           absl::Span<const SpreadArray> inputs,
                                           absl::Span<const std::vector<int64_t>> outputs);
// The rule of a kind that runs on one device alone: UNIMPLEMENTED.
absl::StatusOr<LoopAxes> Undivided(const v1::Operation& operation,
                                   absl::Span<const SpreadArray> inputs,
                                   absl::Span<const std::vector<int64_t>> outputs);
// The axes of an array that broadcasts to `shape`, by those of the shape; -1: it has none there.
std::vector<int> BroadcastAxes(const std::vector<int64_t>& array,
                               const std::vector<int64_t>& shape);

}  // namespace stride::ops
