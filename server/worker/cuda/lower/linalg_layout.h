#pragma once

#include <cstdint>
#include <vector>

#include "server/wire/plan.pb.h"

namespace stride::cuda {

// Aligned parts of one reservation of scratch memory, in order.
class Layout {
 public:
  uint64_t Add(uint64_t bytes) {
    const uint64_t offset = size_;
    // On overflow the size stays so large that no device can reserve it.
    if (__builtin_add_overflow(size_, bytes, &size_) ||
        __builtin_add_overflow(size_, kAlignment - 1, &size_))
      size_ = ~uint64_t{0} / kAlignment * kAlignment;
    size_ = size_ / kAlignment * kAlignment;
    return offset;
  }
  uint64_t size() const { return size_; }

 private:
  static constexpr uint64_t kAlignment = 256;

  uint64_t size_ = 0;
};

// The largest number if the product overflows.
inline uint64_t Bytes(int64_t rows, int64_t columns, int64_t item) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<uint64_t>(item), &bytes))
    return ~uint64_t{0};
  return bytes;
}

// Byte offset of matrix `index` of a batch. `extents`: of the batch axes.
inline int64_t OffsetOf(const wire::Operand& operand, const std::vector<int64_t>& extents,
                        int64_t index) {
  int64_t offset = 0;
  for (size_t i = extents.size(); i-- > 0;) {
    offset += index % extents[i] * operand.strides(static_cast<int>(i));
    index /= extents[i];
  }
  return offset;
}

}  // namespace stride::cuda
