// Element types: NumPy's names and sizes, little-endian.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace stride {

enum class DataType : uint8_t {
  kUnspecified = 0,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};

// The bits of a half-precision number: C++20 has no arithmetic type for it.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

// Bytes of one element; 0 for kUnspecified.
int64_t ItemSize(DataType type);

// `int32`, `bfloat16`, ...
std::string_view Name(DataType type);

// Inverse of Name; nullopt for an unknown name.
std::optional<DataType> ParseDataType(std::string_view name);

// The DataType of a C++ type. Types without one do not compile.
template <typename T>
constexpr DataType DataTypeOf() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return DataType::kBool;
  } else if constexpr (std::is_integral_v<U>) {
    constexpr int kLog = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return static_cast<DataType>((std::is_signed_v<U> ? 2 : 6) + kLog);
  } else if constexpr (std::is_same_v<U, float>) {
    return DataType::kFloat32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DataType::kFloat64;
  } else if constexpr (std::is_same_v<U, Float16>) {
    return DataType::kFloat16;
  } else if constexpr (std::is_same_v<U, Bfloat16>) {
    return DataType::kBfloat16;
  } else if constexpr (std::is_same_v<U, std::complex<float>>) {
    return DataType::kComplex64;
  } else {
    static_assert(std::is_same_v<U, std::complex<double>>, "no Stride data type for this C++ type");
    return DataType::kComplex128;
  }
}

}  // namespace stride
