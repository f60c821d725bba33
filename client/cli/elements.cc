#include "client/cli/elements.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace stride::cli {
namespace {

template <typename T>
T Load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

template <typename T>
std::string Format(T value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  float value;
  if (exponent == 31) {
    value = mantissa ? std::nanf("") : HUGE_VALF;
  } else {
    value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

float FromBfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <typename T>
std::string FormatComplex(const std::byte* data) {
  const T imaginary = Load<T>(data + sizeof(T));
  return Format(Load<T>(data)) + (std::signbit(imaginary) ? "" : "+") + Format(imaginary) + "j";
}

}  // namespace

std::string FormatElement(DataType type, const std::byte* data) {
  switch (type) {
    case DataType::kBool:
      return Load<uint8_t>(data) ? "true" : "false";
    case DataType::kInt8:
      return Format<int>(Load<int8_t>(data));
    case DataType::kInt16:
      return Format(Load<int16_t>(data));
    case DataType::kInt32:
      return Format(Load<int32_t>(data));
    case DataType::kInt64:
      return Format(Load<int64_t>(data));
    case DataType::kUint8:
      return Format<int>(Load<uint8_t>(data));
    case DataType::kUint16:
      return Format(Load<uint16_t>(data));
    case DataType::kUint32:
      return Format(Load<uint32_t>(data));
    case DataType::kUint64:
      return Format(Load<uint64_t>(data));
    case DataType::kFloat16:
      return Format(FromHalf(Load<uint16_t>(data)));
    case DataType::kBfloat16:
      return Format(FromBfloat(Load<uint16_t>(data)));
    case DataType::kFloat32:
      return Format(Load<float>(data));
    case DataType::kFloat64:
      return Format(Load<double>(data));
    case DataType::kComplex64:
      return FormatComplex<float>(data);
    case DataType::kComplex128:
      return FormatComplex<double>(data);
    case DataType::kUnspecified:
      break;
  }
  return "?";
}

}  // namespace stride::cli
