#include "server/store/array_info.h"

#include <algorithm>
#include <utility>

namespace stride {

int64_t ArrayInfo::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

bool ArrayInfo::IsContiguous() const {
  if (num_elements() <= 1) return true;
  int64_t expected = ItemSize(dtype);
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

const SharedInfo& SharedInfo::Unset() {
  static const auto& unset = *new SharedInfo(ArrayInfo{});
  return unset;
}

ArrayInfo Contiguous(DType dtype, std::vector<int64_t> shape) {
  ArrayInfo array{.dtype = dtype, .shape = std::move(shape)};
  array.strides.resize(array.shape.size());
  int64_t stride = ItemSize(dtype);
  for (size_t i = array.shape.size(); i-- > 0;) {
    array.strides[i] = stride;
    // The product of an empty array's extents may overflow; its strides access nothing.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(array.shape[i], 1), &stride)) stride = 0;
  }
  return array;
}

ByteExtent Extent(const ArrayInfo& array) {
  ByteExtent extent{array.offset, array.offset};
  if (array.num_elements() == 0) return extent;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    int64_t reach = (array.shape[i] - 1) * array.strides[i];
    (reach < 0 ? extent.begin : extent.end) += reach;
  }
  extent.end += ItemSize(array.dtype);
  return extent;
}

}  // namespace stride
