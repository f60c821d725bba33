#include "server/ops/scalar_fit.h"

#include <cmath>

namespace stride::ops {
namespace {

double MaxFinite(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.FEp127;
    case DType::kFloat32:
    case DType::kComplex64:
      return 0x1.FFFFFEp127;
    default:
      return INFINITY;
  }
}

bool IntegerIsExact(Integer value, DType to) {
  unsigned __int128 magnitude =
      value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  if (magnitude == 0) return true;
  while ((magnitude & 1) == 0) magnitude >>= 1;
  return magnitude < (static_cast<unsigned __int128>(1) << MantissaBits(to)) &&
         std::abs(static_cast<double>(value)) <= MaxFinite(to);
}

// Returns whether a real fits a float type: a weak scalar may be rounded, as NumPy rounds Python's
// floats; a typed float64 may not.
bool RealFits(double value, DType to, bool typed) {
  if (!std::isfinite(value)) return true;
  if (std::abs(value) > MaxFinite(to)) return false;
  if (!typed || MantissaBits(to) >= 53) return true;
  int exponent;
  double fraction = std::frexp(value, &exponent);
  double scaled = std::ldexp(fraction, MantissaBits(to));
  return scaled == std::trunc(scaled) &&
         (to != DType::kFloat16 || std::abs(value) >= 0x1p-14 || value == 0);
}

}  // namespace

int MantissaBits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 11;
    case DType::kBFloat16:
      return 8;
    case DType::kFloat32:
    case DType::kComplex64:
      return 24;
    default:
      return 53;
  }
}

bool LosesNothing(const ScalarOperand& scalar, DType to) {
  if (const Integer* integer = std::get_if<Integer>(&scalar.value)) {
    return IsFloat(to) || IsComplex(to) ? IntegerIsExact(*integer, to) : FitsInteger(*integer, to);
  }
  bool typed = scalar.dtype.has_value() && ItemSize(*scalar.dtype) > ItemSize(to);
  if (const double* real = std::get_if<double>(&scalar.value)) {
    if (IsFloat(to) || IsComplex(to)) return RealFits(*real, to, typed);
    return std::isfinite(*real) && *real == std::trunc(*real) && std::abs(*real) < 0x1p100 &&
           FitsInteger(static_cast<Integer>(*real), to);
  }
  std::complex<double> z = std::get<std::complex<double>>(scalar.value);
  return IsComplex(to) && RealFits(z.real(), to, typed) && RealFits(z.imag(), to, typed);
}

}  // namespace stride::ops
