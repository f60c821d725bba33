#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stride {

// Element types. The numbers are those of stride.v1.DataType and of `dtype` fields in the worker
// protocol.
enum class DType : int32_t {
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kFloat16 = 10,
  kBFloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
};
inline constexpr int kNumDTypes = 15;

// nullopt when `number` names no type.
constexpr std::optional<DType> DTypeFromNumber(int number) {
  if (number < 1 || number > kNumDTypes) return std::nullopt;
  return static_cast<DType>(number);
}

// Bytes of one element.
constexpr int64_t ItemSize(DType dtype) {
  constexpr int8_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[static_cast<int>(dtype)];
}

// NumPy's name: `float32`, `bool`.
constexpr std::string_view Name(DType dtype) {
  constexpr std::string_view kNames[] = {
      "",       "bool",   "int8",    "int16",    "int32",   "int64",   "uint8",     "uint16",
      "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  return kNames[static_cast<int>(dtype)];
}

constexpr bool IsBool(DType d) { return d == DType::kBool; }
constexpr bool IsSigned(DType d) { return d >= DType::kInt8 && d <= DType::kInt64; }
constexpr bool IsUnsigned(DType d) { return d >= DType::kUInt8 && d <= DType::kUInt64; }
constexpr bool IsInteger(DType d) { return IsSigned(d) || IsUnsigned(d); }
constexpr bool IsFloat(DType d) { return d >= DType::kFloat16 && d <= DType::kFloat64; }
constexpr bool IsComplex(DType d) { return d >= DType::kComplex64; }
// The type of a complex number's parts; any other type itself.
constexpr DType RealType(DType d) {
  if (!IsComplex(d)) return d;
  return d == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
}

}  // namespace stride
