#include "server/ops/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

Integer LowestOf(DType dtype) {
  if (!IsSigned(dtype)) return 0;
  return -(Integer{1} << (8 * ItemSize(dtype) - 1));
}

Integer HighestOf(DType dtype) {
  if (IsBool(dtype)) return 1;
  int64_t bits = 8 * ItemSize(dtype) - (IsSigned(dtype) ? 1 : 0);
  return (Integer{1} << bits) - 1;
}

std::string EncodeInteger(Integer value, DType dtype) {
  // Little-endian two's complement, as on all supported hosts.
  uint64_t bits = static_cast<uint64_t>(value);
  return Bytes(bits).substr(0, ItemSize(dtype));
}

std::string EncodeFloating(std::complex<double> value, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return Bytes(ToFloat16(value.real()));
    case DType::kBFloat16:
      return Bytes(ToBFloat16(value.real()));
    case DType::kFloat32:
      return Bytes(static_cast<float>(value.real()));
    case DType::kFloat64:
      return Bytes(value.real());
    case DType::kComplex64:
      return Bytes(static_cast<float>(value.real())) + Bytes(static_cast<float>(value.imag()));
    default:
      return Bytes(value.real()) + Bytes(value.imag());
  }
}

std::complex<double> ComplexOf(const WeakScalar& value) {
  if (const auto* z = std::get_if<std::complex<double>>(&value)) return *z;
  if (const auto* x = std::get_if<double>(&value)) return *x;
  return static_cast<double>(std::get<Integer>(value));
}

bool IsExactInteger(double x) {
  return std::isfinite(x) && x == std::trunc(x) && std::abs(x) < 0x1p100;
}

absl::Status Refuse(std::string_view field, const std::string& text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
}

// Rounds float32 or wider to a narrower binary format with the given widths of exponent and
// mantissa.
uint16_t Narrow(double value, int exponent_bits, int mantissa_bits) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
  const int max_exponent = (1 << exponent_bits) - 1;
  const uint16_t infinity = static_cast<uint16_t>(max_exponent << mantissa_bits);
  if (std::isnan(value)) return sign | infinity | static_cast<uint16_t>(1 << (mantissa_bits - 1));
  double magnitude = std::abs(value);
  if (magnitude == 0) return sign;
  const int bias = max_exponent >> 1;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude is in [0.5, 1) * 2^exponent
  int unit = std::max(exponent - 1, 1 - bias) - mantissa_bits;  // exponent of the last place
  double scaled = std::nearbyint(std::ldexp(magnitude, -unit));
  // A carry into the next binade needs no correction: the encoding is monotonic.
  int64_t mantissa = static_cast<int64_t>(std::min(scaled, 0x1p30));
  int64_t encoded =
      mantissa + (static_cast<int64_t>(unit + mantissa_bits - (1 - bias)) << mantissa_bits);
  return sign | static_cast<uint16_t>(std::min<int64_t>(encoded, infinity));
}

}  // namespace

std::string ToString(Integer value) {
  if (value < 0) return "-" + ToString(-value);
  if (value < 10) return std::string(1, static_cast<char>('0' + static_cast<int>(value)));
  return ToString(value / 10) + ToString(value % 10);
}

uint16_t ToFloat16(double value) { return Narrow(value, 5, 10); }
uint16_t ToBFloat16(double value) { return Narrow(value, 8, 7); }

double RealOf(const WeakScalar& value) { return ComplexOf(value).real(); }

bool FitsInteger(Integer value, DType dtype) {
  return value >= LowestOf(dtype) && value <= HighestOf(dtype);
}

absl::StatusOr<wire::ScalarValue> EncodeScalar(const WeakScalar& value, DType dtype,
                                               std::string_view field, OutOfRange out_of_range) {
  wire::ScalarValue result;
  result.set_dtype(static_cast<int>(dtype));
  if (IsFloat(dtype) || IsComplex(dtype)) {
    std::complex<double> z = ComplexOf(value);
    if (IsFloat(dtype) && z.imag() != 0) {
      return Refuse(
          field, absl::StrCat("a complex number does not fit a real type; its imaginary part is ",
                              z.imag(), " and the type ", std::string(Name(dtype))));
    }
    result.set_value(EncodeFloating(z, dtype));
    return result;
  }
  Integer integer = 0;
  if (const auto* exact = std::get_if<Integer>(&value)) {
    integer = *exact;
  } else {
    std::complex<double> z = ComplexOf(value);
    if (z.imag() != 0 || !IsExactInteger(z.real())) {
      return Refuse(field, absl::StrCat("the number is no integer, which the type needs: ",
                                        z.real(), " as ", std::string(Name(dtype))));
    }
    integer = static_cast<Integer>(z.real());
  }
  if (!FitsInteger(integer, dtype)) {
    if (out_of_range == OutOfRange::kError) {
      return Refuse(field, absl::StrCat("the integer is out of bounds for the type; ",
                                        ToString(integer), " as ", std::string(Name(dtype))));
    }
    integer = std::clamp(integer, LowestOf(dtype), HighestOf(dtype));
  }
  result.set_value(EncodeInteger(integer, dtype));
  return result;
}

absl::StatusOr<ScalarOperand> ReadScalar(const v1::Scalar& scalar, std::string_view field) {
  ScalarOperand result;
  switch (scalar.value_case()) {
    case v1::Scalar::kBoolValue:
      result.value = Integer{scalar.bool_value() ? 1 : 0};
      result.dtype = DType::kBool;  // a Python bool is not a weak scalar
      break;
    case v1::Scalar::kIntValue:
      result.value = Integer{scalar.int_value()};
      break;
    case v1::Scalar::kUintValue:
      result.value = Integer{scalar.uint_value()};
      break;
    case v1::Scalar::kFloatValue:
      result.value = scalar.float_value();
      break;
    case v1::Scalar::kComplexValue:
      result.value =
          std::complex<double>(scalar.complex_value().real(), scalar.complex_value().imaginary());
      break;
    case v1::Scalar::VALUE_NOT_SET:
      return Refuse(field, "the scalar has no value; set one of its value fields");
  }
  if (scalar.data_type() == 0) return result;
  result.dtype = DTypeFromNumber(scalar.data_type());
  if (!result.dtype) {
    return Refuse(absl::StrCat(std::string(field), ".data_type"),
                  absl::StrCat("no such data type: ", static_cast<int>(scalar.data_type())));
  }
  auto encoded = EncodeScalar(result.value, *result.dtype, field);
  if (!encoded.ok()) return encoded.status();
  return result;
}

}  // namespace stride::ops
