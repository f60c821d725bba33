#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/loop_axes.h"
#include "server/ops/operation_view.h"
#include "server/store/array_info.h"
#include "stride/v1/operation.pb.h"

// How operations over arrays that are spread over devices fall into parts. Pure functions; any
// thread. docs/sharding.md has the rules.
namespace stride::ops {

// Where each part of an axis begins, and at last its length: num_parts + 1 numbers.
std::vector<int64_t> SplitAxis(int64_t length, size_t num_parts);

// The elements [begin, end) along an axis, as a view of the array's buffer.
ArrayInfo SliceOf(const ArrayInfo& array, int axis, int64_t begin, int64_t end);

// The shape of one part.
std::vector<int64_t> PartShape(const std::vector<int64_t>& whole, int axis, int64_t length);

// An operation cut along one axis of its loop.
struct Division {
  // Along no axis: every device makes the whole, and so has a copy of each result.
  bool replicated = false;
  // The axis is summed over: each device makes a partial result of the whole's shape.
  bool partial = false;
  int64_t length = 0;  // the axis's
  std::vector<int> devices;
  std::vector<int>
      input_axes;  // which axis of each input goes along; -1: every part takes all of it
  std::vector<int> output_axes;  // the same for each output; unused when partial or replicated
};

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
  // The size of the longest runs.
  int64_t run_bytes() const { return longest_; }

 private:
  int64_t row_ = 0;             // bytes of all parts' next runs together
  std::vector<int64_t> begin_;  // offset of each part's run within a row, then row_
  int64_t longest_ = 0;
  int64_t rows_ = 1;
};

}  // namespace stride::ops
