#include "server/ops/view_steps.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

std::string Join(std::string_view field, const char* rest) {
  return absl::StrCat(std::string(field), ".", rest);
}

// A Python slice of an axis with `extent` elements: first element and number of elements.
struct Range {
  int64_t first;
  int64_t count;
};

Range ResolveSlice(const v1::View::Slice& slice, int64_t extent, int64_t step) {
  int64_t low = step > 0 ? 0 : -1;
  int64_t high = step > 0 ? extent : extent - 1;
  auto resolve = [&](int64_t bound) {
    if (bound < 0) bound += extent;  // extent >= 0, so this cannot overflow
    return std::clamp(bound, low, high);
  };
  int64_t start = slice.has_start() ? resolve(slice.start()) : (step > 0 ? low : high);
  int64_t stop = slice.has_stop() ? resolve(slice.stop()) : (step > 0 ? high : low);
  // Unsigned magnitudes, since -step overflows for the smallest integer.
  uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  int64_t distance = step > 0 ? stop - start : start - stop;
  if (distance <= 0) return {start, 0};
  return {start, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1};
}

absl::StatusOr<ArrayInfo> DropAxis(ArrayInfo array, const v1::View::Slice& slice, int axis,
                                   std::string_view field) {
  int64_t extent = array.shape[axis];
  int64_t index = slice.start() < 0 ? slice.start() + extent : slice.start();
  if (index < 0 || index >= extent) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, Join(field, "start"),
                        absl::StrCat("the index is out of bounds: ", slice.start(),
                                     " on an axis of ", extent, " elements"));
  }
  array.offset += index * array.strides[axis];
  array.shape.erase(array.shape.begin() + axis);
  array.strides.erase(array.strides.begin() + axis);
  return array;
}

// Replaces the single extent of -1 by the remaining one.
absl::StatusOr<Shape> InferExtent(const ArrayInfo& array, Shape shape, std::string_view field) {
  auto unknown = std::find(shape.begin(), shape.end(), -1);
  if (unknown == shape.end()) return shape;
  *unknown = 1;
  if (auto status = CheckShape(shape, DType::kBool, field); !status.ok()) return status;
  int64_t known = Contiguous(array.dtype, shape).num_elements();
  if (known == 0 || array.num_elements() % known != 0) {
    *unknown = -1;
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, field,
                        absl::StrCat("no extent in place of -1 fits: ", array.num_elements(),
                                     " elements as ", ToString(shape)));
  }
  *unknown = array.num_elements() / known;
  return shape;
}

// Reshapes without a copy by NumPy's rule: old and new axes are matched in runs of equal size, and
// each old run must have even strides.
std::optional<std::vector<int64_t>> ReshapeStrides(const ArrayInfo& array, const Shape& shape) {
  Shape old_shape;
  std::vector<int64_t> old_strides;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    if (array.shape[i] == 1) continue;
    old_shape.push_back(array.shape[i]);
    old_strides.push_back(array.strides[i]);
  }
  std::vector<int64_t> strides(shape.size(), ItemSize(array.dtype));
  size_t old_begin = 0, new_begin = 0;
  while (old_begin < old_shape.size() && new_begin < shape.size()) {
    size_t old_end = old_begin + 1, new_end = new_begin + 1;
    int64_t old_count = old_shape[old_begin], new_count = shape[new_begin];
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= old_shape[old_end++];
      } else {
        new_count *= shape[new_end++];
      }
    }
    for (size_t i = old_begin; i + 1 < old_end; ++i) {
      if (old_strides[i] != old_shape[i + 1] * old_strides[i + 1]) return std::nullopt;
    }
    int64_t stride = old_strides[old_end - 1];
    for (size_t i = new_end; i-- > new_begin;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    old_begin = old_end;
    new_begin = new_end;
  }
  return strides;
}

}  // namespace

absl::StatusOr<ArrayInfo> ApplySlice(ArrayInfo array, const v1::View::Slice& slice,
                                     std::string_view field) {
  auto axes = NormalizeAxes({slice.axis()}, array.shape.size(), Join(field, "axis"));
  if (!axes.ok()) return axes.status();
  int axis = axes->front();
  if (slice.index()) return DropAxis(std::move(array), slice, axis, field);
  int64_t step = slice.has_step() ? slice.step() : 1;
  if (step == 0) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, Join(field, "step"),
                        "the step of a slice must not be zero");
  }
  Range range = ResolveSlice(slice, array.shape[axis], step);
  array.shape[axis] = range.count;
  if (range.count > 0) array.offset += range.first * array.strides[axis];
  // With fewer than two elements a stride is meaningless, and the product might overflow.
  if (range.count > 1) array.strides[axis] *= step;
  return array;
}

absl::StatusOr<ArrayInfo> ApplyTranspose(ArrayInfo array, const v1::View::Transpose& transpose,
                                         std::string_view field) {
  ArrayInfo result = array;
  if (transpose.axes().empty()) {
    std::reverse(result.shape.begin(), result.shape.end());
    std::reverse(result.strides.begin(), result.strides.end());
    return result;
  }
  size_t rank = array.shape.size();
  std::vector<int32_t> axes(transpose.axes().begin(), transpose.axes().end());
  auto normal = NormalizeAxes(axes, rank, Join(field, "axes"));
  if (!normal.ok()) return normal.status();
  if (axes.size() != rank) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, Join(field, "axes"),
                        absl::StrCat("every axis must be named once: ", axes.size(),
                                     " given, the array has ", rank));
  }
  for (size_t i = 0; i < rank; ++i) {
    size_t from = static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int32_t>(rank) : axes[i]);
    result.shape[i] = array.shape[from];
    result.strides[i] = array.strides[from];
  }
  return result;
}

absl::StatusOr<ArrayInfo> ApplyReshape(ArrayInfo array, const v1::View::Reshape& reshape,
                                       std::string_view field) {
  std::string path = Join(field, "shape");
  auto shape = InferExtent(array, Shape(reshape.shape().begin(), reshape.shape().end()), path);
  if (!shape.ok()) return shape.status();
  if (auto status = CheckShape(*shape, array.dtype, path); !status.ok()) return status;
  ArrayInfo result = Contiguous(array.dtype, *shape);
  result.offset = array.offset;
  if (result.num_elements() != array.num_elements()) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, path,
                        absl::StrCat("the number of elements changes: ", ToString(array.shape),
                                     " to ", ToString(*shape)));
  }
  if (array.num_elements() == 0) return result;
  auto strides = ReshapeStrides(array, *shape);
  if (!strides) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, path,
                        absl::StrCat("no view has this shape, since the elements are not evenly "
                                     "spaced; copy the array first: ",
                                     ToString(array.shape), " to ", ToString(*shape)));
  }
  result.strides = *strides;
  return result;
}

absl::StatusOr<ArrayInfo> ApplyBroadcast(ArrayInfo array, const v1::View::Broadcast& broadcast,
                                         std::string_view field) {
  std::string path = Join(field, "shape");
  Shape shape(broadcast.shape().begin(), broadcast.shape().end());
  if (auto status = CheckShape(shape, array.dtype, path); !status.ok()) return status;
  auto common = BroadcastShapes({array.shape, shape}, path);
  if (!common.ok()) return common.status();
  if (*common != shape) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, path,
                        absl::StrCat("the array does not broadcast to the shape: ",
                                     ToString(array.shape), " to ", ToString(shape)));
  }
  array.strides = BroadcastStrides(array, shape);
  array.shape = shape;
  return array;
}

}  // namespace stride::ops
