#include "server/ops/built_in_reduction.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/reduce_access.h"

namespace stride::ops {
namespace {

using Code = wire::ReduceCode;
using Reduction = v1::Reduction;

constexpr BuiltInReduction kBuiltIn[] = {
    {Reduction::FUNCTION_SUM, "sum", Code::COMBINE_ADD, "add"},
    {Reduction::FUNCTION_PROD, "prod", Code::COMBINE_MULTIPLY, "multiply"},
    {Reduction::FUNCTION_MIN, "min", Code::COMBINE_MINIMUM, "minimum"},
    {Reduction::FUNCTION_MAX, "max", Code::COMBINE_MAXIMUM, "maximum"},
    {Reduction::FUNCTION_MEAN, "mean", Code::COMBINE_ADD},
    {Reduction::FUNCTION_ANY, "any", Code::COMBINE_LOGICAL_OR, "logical_or"},
    {Reduction::FUNCTION_ALL, "all", Code::COMBINE_LOGICAL_AND, "logical_and"},
    {Reduction::FUNCTION_ARGMIN, "argmin", Code::COMBINE_ARGMIN},
    {Reduction::FUNCTION_ARGMAX, "argmax", Code::COMBINE_ARGMAX},
    {Reduction::FUNCTION_NORM, "norm", Code::COMBINE_ADD},
    {Reduction::FUNCTION_COUNT_NONZERO, "count_nonzero", Code::COMBINE_ADD},
    {Reduction::FUNCTION_VAR, "var", Code::COMBINE_MOMENTS},
    {Reduction::FUNCTION_STD, "std", Code::COMBINE_MOMENTS},
};

template <typename Key>
const BuiltInReduction* FindBy(Key BuiltInReduction::*field, Key key) {
  for (const BuiltInReduction& one : kBuiltIn) {
    if (one.*field == key) return &one;
  }
  return nullptr;
}

// The sum of squared distances from the mean divided by the degrees of freedom. As in NumPy, none
// of them make infinities and NaN; `skip_nan` makes NaN of them.
absl::StatusOr<Value> FinishVariance(ProgramBuilder& builder, Value squares,
                                     std::optional<Value> counted, int64_t count,
                                     const ReductionExtras& extras) {
  const auto number = [&](double value, DType dtype) -> absl::StatusOr<Value> {
    auto encoded = EncodeScalar(value, dtype, "reduction.correction");
    if (!encoded.ok()) return encoded.status();
    return builder.Constant(*encoded);
  };
  const DType real = squares.dtype, wide = DType::kFloat64;
  if (!counted) {
    auto left = number(std::max(static_cast<double>(count) - extras.correction, 0.0), real);
    if (!left.ok()) return left.status();
    return builder.Op("divide", {squares, *left}, real);
  }
  auto correction = number(extras.correction, wide), none = number(0, wide);
  if (!correction.ok()) return correction.status();
  if (!none.ok()) return none.status();
  const Value left = builder.Op(
      "maximum", {builder.Op("subtract", {builder.Cast(*counted, wide), *correction}, wide), *none},
      wide);
  const Value variance = builder.Op("divide", {squares, builder.Cast(left, real)}, real);
  if (!extras.skip_nan) return variance;
  auto nan = number(std::numeric_limits<double>::quiet_NaN(), real);
  if (!nan.ok()) return nan.status();
  return builder.Op("where", {builder.Cast(left, DType::kBool), variance, *nan}, real);
}

}  // namespace

const BuiltInReduction* FindBuiltInReduction(Reduction::Function function) {
  return FindBy(&BuiltInReduction::function, function);
}

const BuiltInReduction* FindBuiltInReduction(std::string_view ufunc) {
  return FindBy(&BuiltInReduction::ufunc, ufunc);
}

bool BuiltInReduction::has_identity() const {
  return combine != Code::COMBINE_MINIMUM && combine != Code::COMBINE_MAXIMUM && !IsArg(combine);
}

DType BuiltInReduction::DefaultType(DType input) const {
  bool integral = IsInteger(input) || IsBool(input);
  switch (function) {
    case Reduction::FUNCTION_SUM:
    case Reduction::FUNCTION_PROD:
      if (!integral) return input;
      return IsUnsigned(input) ? DType::kUInt64 : DType::kInt64;
    case Reduction::FUNCTION_MEAN:
      return integral ? DType::kFloat64 : input;
    case Reduction::FUNCTION_ANY:
    case Reduction::FUNCTION_ALL:
      return DType::kBool;
    case Reduction::FUNCTION_ARGMIN:
    case Reduction::FUNCTION_ARGMAX:
    case Reduction::FUNCTION_COUNT_NONZERO:
      return DType::kInt64;
    case Reduction::FUNCTION_NORM:
    case Reduction::FUNCTION_VAR:
    case Reduction::FUNCTION_STD:
      return integral ? DType::kFloat64 : RealType(input);
    default:
      return input;
  }
}

absl::Status BuiltInReduction::CheckType(DType input, DType result) const {
  auto refuse = [&](const char* why) {
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, "reduction.data_type",
                        absl::StrCat(why, ": ", name, " of ", std::string(Name(input)), " as ",
                                     std::string(Name(result))));
  };
  switch (function) {
    case Reduction::FUNCTION_ANY:
    case Reduction::FUNCTION_ALL:
      return IsBool(result) ? absl::OkStatus()
                            : refuse("the result is bool; leave data_type unset");
    case Reduction::FUNCTION_ARGMIN:
    case Reduction::FUNCTION_ARGMAX:
    case Reduction::FUNCTION_COUNT_NONZERO:
      return result == DType::kInt64 ? absl::OkStatus()
                                     : refuse("the result is int64; leave data_type unset");
    case Reduction::FUNCTION_NORM:
      return IsFloat(result) ? absl::OkStatus() : refuse("a norm is a float");
    case Reduction::FUNCTION_VAR:
    case Reduction::FUNCTION_STD:
      return IsFloat(result) ? absl::OkStatus() : refuse("a variance is a float");
    case Reduction::FUNCTION_MEAN:
      if (!IsFloat(result) && !IsComplex(result))
        return refuse("a mean is a float or complex number");
      break;
    default:
      break;
  }
  // NumPy lets `dtype=` narrow a reduction only within the kind.
  return CanCastSameKind(input, result)
             ? absl::OkStatus()
             : refuse("the input cannot be cast without changing its kind");
}

DType BuiltInReduction::AccumulatorType(DType input, DType result) const {
  switch (function) {
    case Reduction::FUNCTION_ARGMIN:
    case Reduction::FUNCTION_ARGMAX:
      return ComputeType(input);
    case Reduction::FUNCTION_VAR:
    case Reduction::FUNCTION_STD:
      if (!IsComplex(input)) return ComputeType(result);
      return ItemSize(result) > ItemSize(RealType(input)) ? DType::kComplex128 : input;
    default:
      return ComputeType(result);
  }
}

absl::StatusOr<Value> BuiltInReduction::MapValue(ProgramBuilder& builder, Value element,
                                                 DType accumulator) const {
  const DType input = element.dtype;
  if (function == Reduction::FUNCTION_ANY || function == Reduction::FUNCTION_ALL) {
    return builder.Cast(element, DType::kBool);
  }
  if (function == Reduction::FUNCTION_COUNT_NONZERO)
    return builder.Cast(builder.Cast(element, DType::kBool), accumulator);
  if (function != Reduction::FUNCTION_NORM) return builder.Cast(element, accumulator);
  if (!IsComplex(input)) {
    Value wide = builder.Cast(element, accumulator);
    return builder.Op("multiply", {wide, wide}, accumulator);
  }
  // |z|^2 without the square root: re*re + im*im.
  const DType part = RealType(input);
  Value real = builder.Cast(builder.Op("real", {element}, part), accumulator);
  Value imag = builder.Cast(builder.Op("imag", {element}, part), accumulator);
  return builder.Op("add",
                    {builder.Op("multiply", {real, real}, accumulator),
                     builder.Op("multiply", {imag, imag}, accumulator)},
                    accumulator);
}

absl::StatusOr<Value> BuiltInReduction::FinishValue(ProgramBuilder& builder, Value value,
                                                    std::optional<Value> counted, int64_t count,
                                                    const ReductionExtras& extras) const {
  const DType accumulator = value.dtype;
  if (is_variance()) {
    auto variance = FinishVariance(builder, value, counted, count, extras);
    if (!variance.ok() || function == Reduction::FUNCTION_VAR) return variance;
    return builder.Op("sqrt", {*variance}, accumulator);
  }
  if (function == Reduction::FUNCTION_NORM) return builder.Op("sqrt", {value}, accumulator);
  if (function != Reduction::FUNCTION_MEAN) return value;
  if (counted)
    return builder.Op("divide", {value, builder.Cast(*counted, accumulator)}, accumulator);
  auto divisor = EncodeScalar(static_cast<double>(count), accumulator, "reduction.input");
  if (!divisor.ok()) return divisor.status();
  return builder.Op("divide", {value, builder.Constant(*divisor)}, accumulator);
}

}  // namespace stride::ops
