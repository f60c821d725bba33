#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/planners.h"
#include "server/ops/shape.h"
#include "server/ops/signature.h"

// Core sub-arrays of a gufunc's operands.
namespace stride::ops {

// The layout together with the operands' shapes.
struct Cores {
  std::vector<bool> missing;   // for each dimension of the layout
  std::vector<int64_t> sizes;  // for each dimension of the layout; 1 if missing
  std::vector<size_t> ranks;   // rank of each operand's core, without missing dimensions
  Shape loop;                  // broadcast shape of the axes before the cores
};

// Follows NumPy: an operand with too few axes lacks optional dimensions one after another, and all
// operands then lack them. Cores are the last axes; a number has none. SHAPE_MISMATCH at
// `gufunc.inputs[i]`.
absl::StatusOr<Cores> ReadCores(const CoreLayout& layout, Inputs inputs);
// Computes only `missing` and `ranks`.
absl::StatusOr<Cores> ReadCoreRanks(const CoreLayout& layout, Inputs inputs);

// The gufunc's axes, axis and keep_dims: for each operand, the indices of its core axes in the
// layout's order. With `keep_dims`, the index of an output's axis that is kept with length one.
struct CorePlaces {
  std::vector<std::vector<size_t>> axes;  // inputs, then outputs
  bool keeps = false;
};
absl::StatusOr<CorePlaces> ReadCorePlaces(const v1::Gufunc& gufunc, const CoreLayout& layout,
                                          const Cores& ranks, Inputs inputs);

// Returns the array with these axes moved to the end, in this order.
ArrayInfo WithLastAxes(const ArrayInfo& array, absl::Span<const size_t> axes);
// Inverse of WithLastAxes for a shape.
Shape FromLastAxes(const Shape& shape, absl::Span<const size_t> axes);

}  // namespace stride::ops
