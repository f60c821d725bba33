#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "server/store/array_info.h"
#include "server/store/dtype.h"

namespace stride::conformance {

// Values of every dtype as one C++ type. float64 and complex128 lose nothing; tests keep 64-bit
// integers below 2^53.
using Value = std::complex<double>;

Value Load(DType dtype, const char* bytes);
// Truncates to the 16-bit floats: use exactly representable values.
void Store(DType dtype, Value value, char* bytes);

// An array on the host: the bytes of its buffer and its layout in them.
struct HostArray {
  ArrayInfo info;
  std::string buffer;

  // The element at a C-order position.
  Value At(int64_t position) const;
  std::vector<Value> Values() const;
};

// Contiguous, element i from `value(i)`.
HostArray Make(DType dtype, std::vector<int64_t> shape, const std::function<Value(int64_t)>& value);

// Views of the same buffer.
HostArray Transposed(HostArray array);          // the last two axes swapped
HostArray Reversed(HostArray array, int axis);  // negative stride
HostArray EverySecond(HostArray array, int axis);
HostArray Repeated(
    HostArray array,
    std::vector<int64_t> shape);  // axes of length 1, or new leading ones, with stride 0

}  // namespace stride::conformance
