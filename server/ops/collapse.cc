#include "server/ops/collapse.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace stride::ops {
namespace {

// Kernels advance indices by up to a whole grid before they compare them.
constexpr int64_t kLimit32 = int64_t{1} << 30;

void KeepAxes(Loop& loop, const std::vector<size_t>& axes) {
  Loop kept;
  for (size_t axis : axes) kept.extents.push_back(loop.extents[axis]);
  for (const auto& strides : loop.strides) {
    auto& row = kept.strides.emplace_back();
    for (size_t axis : axes) row.push_back(strides[axis]);
  }
  loop = std::move(kept);
}

std::vector<size_t> LongAxes(const Loop& loop) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < loop.extents.size(); ++i) {
    if (loop.extents[i] != 1) axes.push_back(i);
  }
  return axes;
}

// Returns whether axis `a` has larger strides than `b`, by the last operand whose strides differ.
bool StepsFurther(const Loop& loop, size_t a, size_t b) {
  for (size_t i = loop.strides.size(); i-- > 0;) {
    int64_t left = std::abs(loop.strides[i][a]);
    int64_t right = std::abs(loop.strides[i][b]);
    // A broadcast operand expresses no preference.
    if (left != right && left != 0 && right != 0) return left > right;
  }
  return false;
}

// An insertion sort: the relation is no strict weak order when operands disagree, and ranks are
// small.
void SortAxes(const Loop& loop, std::vector<size_t>& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    for (size_t j = i; j > 0 && StepsFurther(loop, axes[j], axes[j - 1]); --j)
      std::swap(axes[j], axes[j - 1]);
  }
}

bool CanMerge(const Loop& loop, size_t outer) {
  return std::all_of(loop.strides.begin(), loop.strides.end(), [&](const auto& strides) {
    return strides[outer] == strides[outer + 1] * loop.extents[outer + 1];
  });
}

void Merge(Loop& loop, size_t outer) {
  loop.extents[outer] *= loop.extents[outer + 1];
  loop.extents.erase(loop.extents.begin() + outer + 1);
  for (auto& strides : loop.strides) {
    strides[outer] = strides[outer + 1];
    strides.erase(strides.begin() + outer + 1);
  }
}

// Returns one axis with contiguous operands, so that the usual code serves: zero or one elements
// have no strides.
Loop Trivial(const Loop& loop, int64_t count) {
  Loop trivial{{count}, {}};
  trivial.strides.assign(loop.strides.size(), {0});
  return trivial;
}

}  // namespace

int64_t Loop::count() const {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

Loop Collapse(Loop loop, AxisOrder order, bool at_least_one) {
  if (loop.count() == 0) return Trivial(loop, 0);
  std::vector<size_t> axes = LongAxes(loop);
  if (order == AxisOrder::kLocality) SortAxes(loop, axes);
  KeepAxes(loop, axes);
  for (size_t i = loop.extents.size(); i-- > 1;) {
    if (CanMerge(loop, i - 1)) Merge(loop, i - 1);
  }
  if (loop.extents.empty() && at_least_one) return Trivial(loop, 1);
  return loop;
}

wire::Layout::Access AccessOf(const Loop& loop, size_t operand, int64_t item_size) {
  // An operand with at most one element counts as contiguous.
  if (loop.count() <= 1) return wire::Layout::ACCESS_CONTIGUOUS;
  const auto& strides = loop.strides[operand];
  if (std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; })) {
    return wire::Layout::ACCESS_BROADCAST;
  }
  int64_t expected = item_size;
  for (size_t i = loop.extents.size(); i-- > 0;) {
    if (strides[i] != expected) return wire::Layout::ACCESS_STRIDED;
    expected *= loop.extents[i];
  }
  return wire::Layout::ACCESS_CONTIGUOUS;
}

bool Fits32Bits(const Loop& loop) {
  if (loop.count() >= kLimit32) return false;
  for (const auto& strides : loop.strides) {
    int64_t reach = 0;
    for (size_t i = 0; i < loop.extents.size(); ++i) {
      reach += std::abs(strides[i]) * std::max<int64_t>(loop.extents[i] - 1, 0);
    }
    if (reach >= kLimit32) return false;
  }
  return true;
}

}  // namespace stride::ops
