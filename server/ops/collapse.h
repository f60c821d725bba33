#pragma once

#include <cstdint>
#include <vector>

#include "server/wire/plan.pb.h"

namespace stride::ops {

// Loop axes and each operand's byte strides along them: extents[axis], strides[operand][axis].
struct Loop {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;

  int64_t count() const;
};

enum class AxisOrder {
  kKeep,     // the order of elements matters (linear indices)
  kLocality  // axes may be reordered, smallest strides innermost
};

// Returns fewer axes that visit the same elements. Drops axes of length one, orders axes by stride
// (the last operand decides first, since it is written), and merges neighbours over which every
// operand has an even stride. An empty loop becomes one axis of extent 0. With `at_least_one`,
// returns at least one axis.
Loop Collapse(Loop loop, AxisOrder order, bool at_least_one = true);

// Returns the access pattern of an operand with these byte strides.
wire::Layout::Access AccessOf(const Loop& loop, size_t operand, int64_t item_size);

// Returns whether every element number and byte offset of the loop fits 31 bits, including a grid's
// stride.
bool Fits32Bits(const Loop& loop);

}  // namespace stride::ops
