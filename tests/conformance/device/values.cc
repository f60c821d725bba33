#include "tests/conformance/device/values.h"

#include <cstring>

namespace stride::conformance {
namespace {

template <typename T>
T Read(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <typename T>
void Write(T value, char* bytes) {
  std::memcpy(bytes, &value, sizeof(T));
}

// Only normal numbers and zero, as used by the tests.
float FromHalf(uint16_t half) {
  const uint32_t magnitude = half & 0x7fff;
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t bits = magnitude == 0 ? sign : sign | ((magnitude << 13) + (112u << 23));
  return Read<float>(reinterpret_cast<const char*>(&bits));
}

uint16_t ToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  return static_cast<uint16_t>(magnitude == 0 ? sign : sign | ((magnitude - (112u << 23)) >> 13));
}

// Calls `f` with a value of the C++ type of an integer or plain floating dtype.
template <typename F>
auto WithType(DType dtype, F f) {
  switch (dtype) {
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUInt16:
      return f(uint16_t{});
    case DType::kUInt32:
      return f(uint32_t{});
    case DType::kUInt64:
      return f(uint64_t{});
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    default:
      return f(uint8_t{});
  }
}

}  // namespace

Value Load(DType dtype, const char* bytes) {
  switch (dtype) {
    case DType::kFloat16:
      return FromHalf(Read<uint16_t>(bytes));
    case DType::kBFloat16: {
      const uint32_t bits = uint32_t{Read<uint16_t>(bytes)} << 16;
      return Read<float>(reinterpret_cast<const char*>(&bits));
    }
    case DType::kComplex64:
      return Value(Read<std::complex<float>>(bytes));
    case DType::kComplex128:
      return Read<Value>(bytes);
    default:
      return WithType(dtype, [&](auto type) -> Value {
        return static_cast<double>(Read<decltype(type)>(bytes));
      });
  }
}

void Store(DType dtype, Value value, char* bytes) {
  switch (dtype) {
    case DType::kFloat16:
      return Write(ToHalf(static_cast<float>(value.real())), bytes);
    case DType::kBFloat16: {
      const float single = static_cast<float>(value.real());
      return Write(
          static_cast<uint16_t>(Read<uint32_t>(reinterpret_cast<const char*>(&single)) >> 16),
          bytes);
    }
    case DType::kComplex64:
      return Write(std::complex<float>(value), bytes);
    case DType::kComplex128:
      return Write(value, bytes);
    default:
      return WithType(dtype, [&](auto type) {
        // Through int64, so that a negative number wraps in an unsigned type.
        using T = decltype(type);
        if constexpr (std::is_floating_point_v<T>) {
          Write(static_cast<T>(value.real()), bytes);
        } else {
          Write(static_cast<T>(static_cast<int64_t>(value.real())), bytes);
        }
      });
  }
}

Value HostArray::At(int64_t position) const {
  int64_t offset = info.offset;
  for (size_t axis = info.shape.size(); axis-- > 0;) {
    offset += position % info.shape[axis] * info.strides[axis];
    position /= info.shape[axis];
  }
  return Load(info.dtype, buffer.data() + offset);
}

std::vector<Value> HostArray::Values() const {
  std::vector<Value> values;
  for (int64_t i = 0; i < info.num_elements(); ++i) values.push_back(At(i));
  return values;
}

HostArray Make(DType dtype, std::vector<int64_t> shape,
               const std::function<Value(int64_t)>& value) {
  HostArray array;
  array.info = Contiguous(dtype, std::move(shape));
  array.buffer.resize(array.info.size_bytes());
  for (int64_t i = 0; i < array.info.num_elements(); ++i) {
    Store(dtype, value(i), array.buffer.data() + i * ItemSize(dtype));
  }
  return array;
}

HostArray Transposed(HostArray array) {
  const size_t rank = array.info.shape.size();
  std::swap(array.info.shape[rank - 1], array.info.shape[rank - 2]);
  std::swap(array.info.strides[rank - 1], array.info.strides[rank - 2]);
  return array;
}

HostArray Reversed(HostArray array, int axis) {
  array.info.offset += (array.info.shape[axis] - 1) * array.info.strides[axis];
  array.info.strides[axis] = -array.info.strides[axis];
  return array;
}

HostArray EverySecond(HostArray array, int axis) {
  array.info.shape[axis] = (array.info.shape[axis] + 1) / 2;
  array.info.strides[axis] *= 2;
  return array;
}

HostArray Repeated(HostArray array, std::vector<int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t added = shape.size() - array.info.shape.size();
  for (size_t axis = 0; axis < array.info.shape.size(); ++axis) {
    if (array.info.shape[axis] == shape[added + axis]) {
      strides[added + axis] = array.info.strides[axis];
    }
  }
  array.info.shape = std::move(shape);
  array.info.strides = std::move(strides);
  return array;
}

}  // namespace stride::conformance
