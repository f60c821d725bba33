#pragma once

#include <cstdint>
#include <vector>

#include "server/wire/plan.pb.h"

namespace stride::ops {

// Loop axes and the byte strides of every operand along them: extents[axis],
// strides[operand][axis].
struct Loop {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;

  int64_t count() const;
};

enum class AxisOrder {
  kKeep,     // the order of elements matters (linear indices)
  kLocality  // axes may be reordered so that the innermost one has the smallest steps
};

// Fewer axes that visit the same elements: axes of length one are dropped, axes are ordered by
// their steps (the last operand's first, since it is the one written), and neighbours that every
// operand walks evenly are merged. An empty loop becomes one axis of extent 0. Never leaves fewer
// than one axis when `at_least_one`.
Loop Collapse(Loop loop, AxisOrder order, bool at_least_one = true);

// How an operand with these byte strides walks the loop.
wire::Layout::Access AccessOf(const Loop& loop, size_t operand, int64_t item_size);

// Whether every element number and byte offset within the loop fits 31 bits, with room for a grid's
// stride.
bool Fits32Bits(const Loop& loop);

}  // namespace stride::ops
