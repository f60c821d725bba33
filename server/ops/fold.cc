#include "server/ops/fold.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace stride::ops {
namespace {

using Complex = std::complex<double>;

constexpr Integer kLowest = std::numeric_limits<int64_t>::min();
constexpr Integer kHighest = std::numeric_limits<uint64_t>::max();

std::optional<WeakScalar> Checked(Integer value) {
  if (value < kLowest || value > kHighest) return std::nullopt;
  return value;
}

std::optional<WeakScalar> IntegerPower(Integer base, Integer exponent) {
  if (exponent < 0) {
    if (base == 0) return std::nullopt;
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  Integer result = 1;
  for (Integer i = 0; i < exponent; ++i) {
    if (base == 0 || base == 1) return exponent == 0 ? Integer{1} : base;
    if (base == -1) return exponent % 2 == 0 ? Integer{1} : Integer{-1};
    result *= base;  // both magnitudes are below 2^65, so the product fits 128 bits
    if (!Checked(result)) return std::nullopt;
  }
  return result;
}

std::optional<WeakScalar> FoldIntegers(std::string_view op, Integer a, Integer b) {
  if (op == "add") return Checked(a + b);
  if (op == "subtract") return Checked(a - b);
  if (op == "multiply") {
    Integer product;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return Checked(product);
  }
  if (op == "divide" && b != 0) return static_cast<double>(a) / static_cast<double>(b);
  if ((op == "floor_divide" || op == "remainder") && b != 0) {
    Integer quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
      --quotient;
      rest += b;
    }
    return Checked(op == "remainder" ? rest : quotient);
  }
  if (op == "power") return IntegerPower(a, b);
  if (op == "bitwise_and") return Checked(a & b);
  if (op == "bitwise_or") return Checked(a | b);
  if (op == "bitwise_xor") return Checked(a ^ b);
  if (op == "left_shift" && b >= 0 && b < 62)
    return Checked(a * (Integer{1} << static_cast<int>(b)));
  if (op == "right_shift" && b >= 0) return Checked(a >> static_cast<int>(b > 100 ? 100 : b));
  return std::nullopt;
}

std::optional<WeakScalar> FoldReals(std::string_view op, double a, double b) {
  if (op == "add") return a + b;
  if (op == "subtract") return a - b;
  if (op == "multiply") return a * b;
  if (op == "divide" && b != 0) return a / b;
  if (op == "power" && a > 0) return std::pow(a, b);
  return std::nullopt;
}

std::optional<WeakScalar> FoldComplex(std::string_view op, Complex a, Complex b) {
  if (op == "add") return a + b;
  if (op == "subtract") return a - b;
  if (op == "multiply") return a * b;
  if (op == "divide" && b != 0.0) return a / b;
  return std::nullopt;
}

Complex ToComplex(const WeakScalar& value) {
  if (const Complex* z = std::get_if<Complex>(&value)) return *z;
  return RealOf(value);
}

std::optional<WeakScalar> FoldUnary(std::string_view op, const WeakScalar& a) {
  if (op == "positive") return a;
  if (const Integer* integer = std::get_if<Integer>(&a)) {
    if (op == "negative") return Checked(-*integer);
    if (op == "invert") return Checked(~*integer);
    return std::nullopt;
  }
  if (op != "negative") return std::nullopt;
  if (const double* real = std::get_if<double>(&a)) return -*real;
  return -std::get<Complex>(a);
}

}  // namespace

std::optional<WeakScalar> Fold(std::string_view op, const std::vector<WeakScalar>& arguments) {
  if (arguments.size() == 1) return FoldUnary(op, arguments[0]);
  const WeakScalar& a = arguments[0];
  const WeakScalar& b = arguments[1];
  if (std::holds_alternative<Complex>(a) || std::holds_alternative<Complex>(b)) {
    return FoldComplex(op, ToComplex(a), ToComplex(b));
  }
  const Integer* left = std::get_if<Integer>(&a);
  const Integer* right = std::get_if<Integer>(&b);
  if (left != nullptr && right != nullptr) return FoldIntegers(op, *left, *right);
  return FoldReals(op, RealOf(a), RealOf(b));
}

}  // namespace stride::ops
