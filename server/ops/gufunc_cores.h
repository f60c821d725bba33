#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/planners.h"
#include "server/ops/shape.h"
#include "server/ops/signature.h"

// Where the sub-arrays of a gufunc's operands are.
namespace stride::ops {

// The layout with what the operands tell.
struct Cores {
  std::vector<bool> missing;   // of the layout's dimensions
  std::vector<int64_t> sizes;  // likewise; 1 of missing ones
  std::vector<size_t> ranks;   // of each operand's core, without missing dimensions
  Shape loop;                  // to which what is before the cores broadcasts
};

// As NumPy does: an operand with too few axes lacks optional dimensions, one after another, which
// all operands then lack. Cores are the last axes; a number has none. SHAPE_MISMATCH at
// `gufunc.inputs[i]`.
absl::StatusOr<Cores> ReadCores(const CoreLayout& layout, Inputs inputs);
// `missing` and `ranks` alone.
absl::StatusOr<Cores> ReadCoreRanks(const CoreLayout& layout, Inputs inputs);

// The gufunc's axes, axis and keep_dims: for each operand, which of its axes are the core's, from
// 0, in the layout's order. Of outputs with `keep_dims` the one that stays with length one.
struct CorePlaces {
  std::vector<std::vector<size_t>> axes;  // inputs, then outputs
  bool keeps = false;
};
absl::StatusOr<CorePlaces> ReadCorePlaces(const v1::Gufunc& gufunc, const CoreLayout& layout,
                                          const Cores& ranks, Inputs inputs);

// The array with these axes last, in this order.
ArrayInfo WithLastAxes(const ArrayInfo& array, absl::Span<const size_t> axes);
// The shape whose axes WithLastAxes would bring there.
Shape FromLastAxes(const Shape& shape, absl::Span<const size_t> axes);

}  // namespace stride::ops
