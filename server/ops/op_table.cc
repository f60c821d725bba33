#include "server/ops/op_table.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace stride::ops {
namespace {

constexpr int B = kBoolLoop, I = kIntLoops, F = kFloatLoops, C = kComplexLoops;

// Columns: name, arity, loops, result, rule, body, refuses_bool, identity, doc.
constexpr OpRow kTable[] = {
    // Arithmetic.
    {"add", 2, B | I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "0",
     "a + b; integers wrap, bool is or"},
    {"subtract", 2, I | F | C, ResultRule::kSame, TypeRule::kUniform, "", true, "", "a - b"},
    {"multiply", 2, B | I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "1",
     "a * b; bool is and"},
    {"divide", 2, F | C, ResultRule::kSame, TypeRule::kDivide, "", false, "", "true division"},
    {"floor_divide", 2, I | F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "division rounded down; integers by zero give 0"},
    {"remainder", 2, I | F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "remainder with the divisor's sign; integers by zero give 0"},
    {"fmod", 2, I | F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "remainder with the dividend's sign; integers by zero give 0"},
    {"power", 2, I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "a to the b; an integer to a negative power is rounded towards zero"},
    {"float_power", 2, kDoubleLoops, ResultRule::kSame, TypeRule::kUniform, "st_power(a, b)", false,
     "", "a to the b in at least float64"},
    {"negative", 1, I | F | C, ResultRule::kSame, TypeRule::kUniform, "", true, "", "-a"},
    {"positive", 1, I | F | C, ResultRule::kSame, TypeRule::kUniform, "a", true, "", "+a"},
    {"absolute", 1, B | I | F | C, ResultRule::kReal, TypeRule::kUniform, "", false, "",
     "magnitude"},
    {"fabs", 1, F, ResultRule::kSame, TypeRule::kUniform, "st_absolute(a)", false, "",
     "magnitude of a float"},
    {"square", 1, I | F | C, ResultRule::kSame, TypeRule::kUniform, "st_multiply(a, a)", false, "",
     "a * a"},
    {"reciprocal", 1, I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "1 / a"},
    {"sign", 1, I | F | C, ResultRule::kSame, TypeRule::kUniform, "", true, "",
     "-1, 0 or 1; complex: a / |a|"},
    {"conjugate", 1, I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "complex conjugate"},
    {"real", 1, B | I | F | C, ResultRule::kReal, TypeRule::kUniform, "", false, "", "real part"},
    {"imag", 1, B | I | F | C, ResultRule::kReal, TypeRule::kUniform, "", false, "",
     "imaginary part"},
    {"gcd", 2, I, ResultRule::kSame, TypeRule::kUniform, "", true, "0", "greatest common divisor"},
    {"lcm", 2, I, ResultRule::kSame, TypeRule::kUniform, "", true, "", "least common multiple"},
    // Powers, exponentials, logarithms.
    {"sqrt", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "square root"},
    {"cbrt", 1, F, ResultRule::kSame, TypeRule::kUniform, "", false, "", "cube root"},
    {"exp", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "e to the a"},
    {"exp2", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "2 to the a"},
    {"expm1", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "exp(a) - 1"},
    {"log", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "natural logarithm"},
    {"log2", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "logarithm to base 2"},
    {"log10", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "logarithm to base 10"},
    {"log1p", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "log(1 + a)"},
    {"logaddexp", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "-inf",
     "log(exp(a) + exp(b))"},
    {"logaddexp2", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "-inf",
     "log2(2**a + 2**b)"},
    // Trigonometry.
    {"sin", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "sine"},
    {"cos", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "cosine"},
    {"tan", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "tangent"},
    {"arcsin", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "inverse sine"},
    {"arccos", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "inverse cosine"},
    {"arctan", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "inverse tangent"},
    {"arctan2", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "angle of the point (b, a)"},
    {"hypot", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "0",
     "sqrt(a*a + b*b) without overflow"},
    {"sinh", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "hyperbolic sine"},
    {"cosh", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "hyperbolic cosine"},
    {"tanh", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "", "hyperbolic tangent"},
    {"arcsinh", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "inverse hyperbolic sine"},
    {"arccosh", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "inverse hyperbolic cosine"},
    {"arctanh", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "inverse hyperbolic tangent"},
    {"degrees", 1, F, ResultRule::kSame, TypeRule::kUniform, "", false, "", "radians to degrees"},
    {"rad2deg", 1, F, ResultRule::kSame, TypeRule::kUniform, "st_degrees(a)", false, "",
     "radians to degrees"},
    {"radians", 1, F, ResultRule::kSame, TypeRule::kUniform, "", false, "", "degrees to radians"},
    {"deg2rad", 1, F, ResultRule::kSame, TypeRule::kUniform, "st_radians(a)", false, "",
     "degrees to radians"},
    // Rounding and the parts of floats.
    {"ceil", 1, B | I | F, ResultRule::kSame, TypeRule::kUniform, "", false, "", "rounded up"},
    {"floor", 1, B | I | F, ResultRule::kSame, TypeRule::kUniform, "", false, "", "rounded down"},
    {"trunc", 1, B | I | F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "rounded towards zero"},
    {"rint", 1, F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "rounded to nearest, ties to even"},
    {"copysign", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "magnitude of a, sign of b"},
    {"nextafter", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "next float from a towards b"},
    {"spacing", 1, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "distance to the next float away from zero"},
    {"ldexp", 2, F, ResultRule::kSame, TypeRule::kLoadExponent, "", false, "", "a * 2**b"},
    {"frexp_mantissa", 1, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "first output of frexp: a / 2**e, from 0.5 to 1"},
    {"frexp_exponent", 1, F, ResultRule::kInt32, TypeRule::kUniform, "", false, "",
     "second output of frexp: e"},
    {"modf_fraction", 1, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "first output of modf: what follows the point, with a's sign"},
    {"modf_whole", 1, F, ResultRule::kSame, TypeRule::kUniform, "st_trunc(a)", false, "",
     "second output of modf: a rounded towards zero"},
    {"heaviside", 2, F, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "0 below zero, b at zero, 1 above"},
    // Extremes.
    {"maximum", 2, B | I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "greater; NaN wins"},
    {"minimum", 2, B | I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "lesser; NaN wins"},
    {"fmax", 2, B | I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "greater; NaN loses"},
    {"fmin", 2, B | I | F | C, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "lesser; NaN loses"},
    {"clip", 3, B | I | F | C, ResultRule::kSame, TypeRule::kClip,
     "st_minimum(st_maximum(a, b), c)", false, "", "a held between b and c"},
    // Bits.
    {"bitwise_and", 2, B | I, ResultRule::kSame, TypeRule::kUniform, "", false, "-1", "a & b"},
    {"bitwise_or", 2, B | I, ResultRule::kSame, TypeRule::kUniform, "", false, "0", "a | b"},
    {"bitwise_xor", 2, B | I, ResultRule::kSame, TypeRule::kUniform, "", false, "0", "a ^ b"},
    {"invert", 1, B | I, ResultRule::kSame, TypeRule::kUniform, "", false, "", "~a; bool is not"},
    {"left_shift", 2, I, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "a << b; 0 when b is the width or more"},
    {"right_shift", 2, I, ResultRule::kSame, TypeRule::kUniform, "", false, "",
     "a >> b; 0 or -1 when b is the width or more"},
    {"bitwise_count", 1, I, ResultRule::kUInt8, TypeRule::kUniform, "", false, "",
     "number of one bits of |a|"},
    // Comparison and logic.
    {"equal", 2, B | I | F | C, ResultRule::kBool, TypeRule::kComparison, "", false, "", "a == b"},
    {"not_equal", 2, B | I | F | C, ResultRule::kBool, TypeRule::kComparison, "", false, "",
     "a != b"},
    {"less", 2, B | I | F | C, ResultRule::kBool, TypeRule::kComparison, "", false, "",
     "a < b; complex by real, then imaginary part"},
    {"less_equal", 2, B | I | F | C, ResultRule::kBool, TypeRule::kComparison, "", false, "",
     "a <= b"},
    {"greater", 2, B | I | F | C, ResultRule::kBool, TypeRule::kComparison, "", false, "", "a > b"},
    {"greater_equal", 2, B | I | F | C, ResultRule::kBool, TypeRule::kComparison, "", false, "",
     "a >= b"},
    {"logical_and", 2, B | I | F | C, ResultRule::kBool, TypeRule::kLogical,
     "st_truth(a) && st_truth(b)", false, "true", "both are not zero"},
    {"logical_or", 2, B | I | F | C, ResultRule::kBool, TypeRule::kLogical,
     "st_truth(a) || st_truth(b)", false, "false", "one is not zero"},
    {"logical_xor", 2, B | I | F | C, ResultRule::kBool, TypeRule::kLogical,
     "st_truth(a) != st_truth(b)", false, "false", "just one is not zero"},
    {"logical_not", 1, B | I | F | C, ResultRule::kBool, TypeRule::kLogical, "!st_truth(a)", false,
     "", "is zero"},
    {"isfinite", 1, B | I | F | C, ResultRule::kBool, TypeRule::kUniform, "", false, "",
     "neither infinite nor NaN"},
    {"isinf", 1, B | I | F | C, ResultRule::kBool, TypeRule::kUniform, "", false, "", "infinite"},
    {"isnan", 1, B | I | F | C, ResultRule::kBool, TypeRule::kUniform, "", false, "",
     "not a number"},
    {"signbit", 1, F, ResultRule::kBool, TypeRule::kUniform, "", false, "", "the sign bit is set"},
    {"where", 3, B | I | F | C, ResultRule::kSame, TypeRule::kWhere, "a ? b : c", false, "",
     "b where a, else c"},
};

// Functions of random.h over uint64. The last one takes float64, or uint32 for a float32 result.
constexpr OpRow kInternal[] = {
    {"random_half", 1, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_odd", 1, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_word", 2, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_philox_low", 3, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_philox_high", 3, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_threefry", 2, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_below", 2, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
    {"random_normal", 1, 0, ResultRule::kSame, TypeRule::kUniform, "", false, "", ""},
};

struct Alias {
  std::string_view name, target;
};
constexpr Alias kAliases[] = {
    {"abs", "absolute"},
    {"acos", "arccos"},
    {"acosh", "arccosh"},
    {"asin", "arcsin"},
    {"asinh", "arcsinh"},
    {"atan", "arctan"},
    {"atan2", "arctan2"},
    {"atanh", "arctanh"},
    {"bitwise_invert", "invert"},
    {"bitwise_not", "invert"},
    {"bitwise_left_shift", "left_shift"},
    {"bitwise_right_shift", "right_shift"},
    {"conj", "conjugate"},
    {"mod", "remainder"},
    {"pow", "power"},
    {"true_divide", "divide"},
};
constexpr TwoOutputUfunc kTwoOutputs[] = {
    {"divmod", "floor_divide", "remainder"},
    {"frexp", "frexp_mantissa", "frexp_exponent"},
    {"modf", "modf_fraction", "modf_whole"},
};

std::map<std::string_view, const OpRow*> MakeIndex() {
  std::map<std::string_view, const OpRow*> index;
  for (const OpRow& row : kTable) index[row.name] = &row;
  for (const Alias& alias : kAliases) index[alias.name] = index.at(alias.target);
  return index;
}

const std::map<std::string_view, const OpRow*>& Index() {
  static const auto& index = *new std::map<std::string_view, const OpRow*>(MakeIndex());
  return index;
}

// Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

absl::Span<const OpRow> OpTable() { return kTable; }

const OpRow* FindOp(std::string_view name) {
  auto found = Index().find(name);
  return found == Index().end() ? nullptr : found->second;
}

const OpRow* FindInstruction(std::string_view name) {
  for (const OpRow& row : kInternal) {
    if (row.name == name) return &row;
  }
  return FindOp(name);
}

const TwoOutputUfunc* FindTwoOutputUfunc(std::string_view name) {
  auto found = std::find_if(std::begin(kTwoOutputs), std::end(kTwoOutputs),
                            [&](const TwoOutputUfunc& ufunc) { return ufunc.name == name; });
  return found == std::end(kTwoOutputs) ? nullptr : found;
}

std::string SuggestOp(std::string_view name, absl::Span<const std::string> more) {
  if (name.empty() || name.size() > 64) return "";
  // A third of the letters may differ; among equal distances, prefer a name with the same first
  // letter.
  size_t best = 2 * (std::max<size_t>(1, (name.size() + 1) / 3) + 1);
  std::string_view suggestion;
  auto consider = [&](std::string_view candidate) {
    if (candidate.empty()) return;
    size_t distance = 2 * EditDistance(name, candidate) + (candidate[0] != name[0]);
    if (distance < best) {
      best = distance;
      suggestion = candidate;
    }
  };
  for (const std::string& candidate : more) consider(candidate);
  for (const auto& [candidate, row] : Index()) consider(candidate);
  for (const TwoOutputUfunc& ufunc : kTwoOutputs) consider(ufunc.name);
  return std::string(suggestion);
}

std::string BodyOf(const OpRow& row) {
  if (!row.body.empty()) return std::string(row.body);
  constexpr std::string_view kArguments[] = {"", "(a)", "(a, b)", "(a, b, c)"};
  return "st_" + std::string(row.name) + std::string(kArguments[row.arity]);
}

bool HasLoop(const OpRow& row, DType dtype) {
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
    if (row.loops & kDoubleLoops) return true;
  }
  if (IsBool(dtype)) return row.loops & kBoolLoop;
  if (IsInteger(dtype)) return row.loops & kIntLoops;
  return row.loops & (IsFloat(dtype) ? kFloatLoops : kComplexLoops);
}

DType ComputeType(const OpRow& row, DType dtype) {
  if (row.name == "nextafter" || row.name == "spacing") return dtype;
  return ComputeType(dtype);
}

DType ResultOf(const OpRow& row, DType dtype) {
  switch (row.result) {
    case ResultRule::kSame:
      return dtype;
    case ResultRule::kBool:
      return DType::kBool;
    case ResultRule::kUInt8:
      return DType::kUInt8;
    case ResultRule::kInt32:
      return DType::kInt32;
    case ResultRule::kReal:
      if (dtype == DType::kComplex64) return DType::kFloat32;
      if (dtype == DType::kComplex128) return DType::kFloat64;
      return dtype;
  }
  return dtype;
}

}  // namespace stride::ops
