#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/store/dtype.h"

namespace stride {

// Layout of an array in its buffer, as in NumPy: element (i0, i1, ...) is at byte offset +
// i0*strides[0] + i1*strides[1] + ...
struct ArrayInfo {
  DType dtype = DType::kFloat64;
  std::vector<int64_t> shape;    // elements, outermost axis first; all >= 0
  std::vector<int64_t> strides;  // bytes; may be negative or zero
  int64_t offset = 0;            // bytes from the buffer's start to element (0, 0, ...)

  int64_t num_elements() const;
  int64_t size_bytes() const { return num_elements() * ItemSize(dtype); }
  bool IsContiguous() const;  // C order without gaps; true for empty and one-element arrays.
  bool operator==(const ArrayInfo&) const = default;
};

// An immutable ArrayInfo, shared by arrays of equal layout. Never null.
class SharedInfo {
 public:
  SharedInfo() : SharedInfo(Unset()) {}
  SharedInfo(ArrayInfo info) : info_(std::make_shared<const ArrayInfo>(std::move(info))) {}
  const ArrayInfo& operator*() const { return *info_; }
  const ArrayInfo* operator->() const { return info_.get(); }
  operator const ArrayInfo&() const { return *info_; }

 private:
  static const SharedInfo& Unset();
  std::shared_ptr<const ArrayInfo> info_;
};

// A C-contiguous array at offset 0.
ArrayInfo Contiguous(DType dtype, std::vector<int64_t> shape);

// Lowest and one past the highest byte that the elements touch, relative to the buffer's start.
// Empty arrays: begin == end.
struct ByteExtent {
  int64_t begin = 0;
  int64_t end = 0;
};
ByteExtent Extent(const ArrayInfo& array);

}  // namespace stride
