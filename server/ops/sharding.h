#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"
#include "server/store/array_info.h"
#include "stride/v1/operation.pb.h"

// How operations over arrays that are spread over devices fall into parts. Pure functions; any
// thread. docs/sharding.md has the rules.
namespace stride::ops {

// How an array is spread: split along `axis` as numpy.array_split does, or a copy on each device.
struct Spread {
  int axis = 0;  // in [0, rank); 0 when replicated
  bool replicated = false;
  std::vector<int> devices;  // in the order of the parts
  bool operator==(const Spread&) const = default;
};

// Where each part of an axis begins, and at last its length: num_parts + 1 numbers.
std::vector<int64_t> SplitAxis(int64_t length, size_t num_parts);

// The elements [begin, end) along an axis, as a view of the array's buffer.
ArrayInfo SliceOf(const ArrayInfo& array, int axis, int64_t begin, int64_t end);

// The shape of one part.
std::vector<int64_t> PartShape(const std::vector<int64_t>& whole, int axis, int64_t length);

// An array of an operation: how it is spread, or null: it is in one piece.
struct SpreadArray {
  const Spread* spread = nullptr;
  std::vector<int64_t> shape;  // of the whole; of a scalar: no axes
  std::string field;           // path within the Operation
};

// An operation cut along one axis of its loop.
struct Division {
  // Along no axis: every device makes the whole, and so has a copy of each result.
  bool replicated = false;
  // The axis is summed over: each device makes a partial result of the whole's shape.
  bool partial = false;
  int64_t length = 0;  // of the axis
  std::vector<int> devices;
  std::vector<int>
      input_axes;  // which axis of each input goes along; -1: every part takes all of it
  std::vector<int> output_axes;  // likewise of each output; unused when partial or replicated
};

// Axes of an operation's loop by number, and which axis of an array goes along each; -1: none.
struct LoopAxes {
  std::vector<std::vector<int>> input_axes;   // of each input, by loop axis
  std::vector<std::vector<int>> output_axes;  // of each output; -1: the axis is summed over
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

// At least one of `inputs` and `existing` is spread. `outputs`: shapes of the whole's results.
// `existing[j]` has no field when output j is new. An error is INVALID_ARGUMENT or UNIMPLEMENTED,
// names the operand and says how to bring it into a form that works.
absl::StatusOr<Division> Divide(const OperationView& operation,
                                absl::Span<const SpreadArray> inputs,
                                absl::Span<const SpreadArray> existing,
                                absl::Span<const std::vector<int64_t>> outputs);

// How the bytes of a split array, in C order, fall to its parts: runs of bytes that lie together in
// one part. The bytes of a part, in the whole's order, are the part's own C order.
class ByteRuns {
 public:
  ByteRuns(const ArrayInfo& whole, int axis, size_t num_parts);
  struct Run {
    int part = 0;
    int64_t size = 0;  // from the position to the run's end
  };
  // That a position in [0, size of the whole) lies in.
  Run At(int64_t position) const;
  // How many of the part's bytes come before `position`.
  int64_t Before(int part, int64_t position) const;
  // The inverse, of the next one: where the part's byte at `offset` lies in the whole.
  int64_t PositionOf(int part, int64_t offset) const;
  // Whether each part lies in one run.
  bool is_one_row() const { return rows_ <= 1; }
  // Of the longest runs.
  int64_t run_bytes() const { return longest_; }

 private:
  int64_t row_ = 0;             // bytes of all parts' next runs together
  std::vector<int64_t> begin_;  // of each part's run within a row, then row_
  int64_t longest_ = 0;
  int64_t rows_ = 1;
};

}  // namespace stride::ops
