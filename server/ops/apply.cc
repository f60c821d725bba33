#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/program_builder.h"
#include "server/ops/promotion.h"

namespace stride::ops {
namespace {

// Largest exponents computed by multiplication. Each multiplication rounds once, so floats stay
// within 2 ULP of pow.
constexpr int kMaxFloatPower = 4;
constexpr int kMaxIntegerPower = 64;

std::vector<ArgumentType> TypesOf(absl::Span<const Argument> arguments) {
  std::vector<ArgumentType> types;
  for (const Argument& argument : arguments) {
    if (const Value* value = std::get_if<Value>(&argument)) {
      types.emplace_back(value->dtype);
    } else {
      types.emplace_back(std::get<WeakScalar>(argument));
    }
  }
  return types;
}

const Integer* WeakInteger(const Argument& argument) {
  const WeakScalar* weak = std::get_if<WeakScalar>(&argument);
  return weak == nullptr ? nullptr : std::get_if<Integer>(weak);
}

bool IsIntegerLoop(DType dtype) { return IsInteger(dtype) || IsBool(dtype); }

// Computes the comparison in a 64-bit type if the integer does not fit the other argument's type.
void WidenComparison(absl::Span<const Argument> arguments, ResolvedLoop* loop) {
  for (int i = 0; i < 2; ++i) {
    const Integer* integer = WeakInteger(arguments[i]);
    if (integer == nullptr || !IsIntegerLoop(loop->arguments[i]) ||
        FitsInteger(*integer, loop->arguments[i]))
      continue;
    DType& other = loop->arguments[1 - i];
    if (!IsIntegerLoop(other)) continue;
    other = IsSigned(other) ? DType::kInt64 : DType::kUInt64;
    loop->arguments[i] = FitsInteger(*integer, DType::kInt64) ? DType::kInt64 : DType::kUInt64;
  }
}

absl::StatusOr<Value> Convert(ProgramBuilder& builder, const OpRow& row, const Argument& argument,
                              DType dtype, std::string_view field) {
  if (const Value* value = std::get_if<Value>(&argument)) return builder.Cast(*value, dtype);
  WeakScalar scalar = std::get<WeakScalar>(argument);
  const Integer* integer = std::get_if<Integer>(&scalar);
  if (integer != nullptr &&
      (row.rule == TypeRule::kLogical || (row.rule == TypeRule::kWhere && IsBool(dtype)))) {
    if (!IsFloat(dtype)) scalar = Integer{*integer != 0};
  }
  if (row.rule == TypeRule::kWhere && IsBool(dtype) && integer == nullptr) {
    scalar = Integer{std::holds_alternative<double>(scalar)
                         ? std::get<double>(scalar) != 0
                         : std::get<std::complex<double>>(scalar) != 0.0};
  }
  auto encoded =
      EncodeScalar(scalar, dtype, field,
                   row.rule == TypeRule::kClip ? OutOfRange::kSaturate : OutOfRange::kError);
  if (!encoded.ok()) return encoded.status();
  return builder.Constant(*encoded);
}

// Computes base ** exponent by squaring; exponent >= 1.
Value Multiplied(ProgramBuilder& builder, Value base, int exponent) {
  if (exponent == 1) return base;
  Value half = Multiplied(builder, base, exponent / 2);
  Value square = builder.Op("multiply", {half, half}, base.dtype);
  return exponent % 2 == 0 ? square : builder.Op("multiply", {square, base}, base.dtype);
}

// Returns the exponent if base ** exponent is computed by multiplication, else 0.
int SmallExponent(const OpRow& row, const Argument& exponent, DType loop) {
  if (row.name != "power") return 0;
  const WeakScalar* weak = std::get_if<WeakScalar>(&exponent);
  if (weak == nullptr) return 0;
  double value = 0;
  if (const Integer* integer = std::get_if<Integer>(weak)) {
    value = static_cast<double>(*integer);
  } else if (const double* real = std::get_if<double>(weak)) {
    value = *real;
  }
  int limit = IsInteger(loop) ? kMaxIntegerPower : kMaxFloatPower;
  if (!(value >= 1 && value <= limit) || value != static_cast<int>(value)) return 0;
  return static_cast<int>(value);
}

absl::Status CheckIntegerPower(const OpRow& row, absl::Span<const Argument> arguments,
                               const ResolvedLoop& loop, std::string_view field) {
  if (row.name != "power" || !IsInteger(loop.result)) return absl::OkStatus();
  const Integer* exponent = WeakInteger(arguments[1]);
  if (exponent == nullptr || *exponent >= 0) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      absl::StrCat("an integer to a negative integer power is not an integer; make "
                                   "the base a float: exponent ",
                                   ToString(*exponent)));
}

}  // namespace

absl::StatusOr<Value> Apply(ProgramBuilder& builder, const OpRow& row,
                            absl::Span<const Argument> arguments, std::optional<DType> data_type,
                            std::string_view field, Casting casting) {
  if (arguments.size() != static_cast<size_t>(row.arity)) {
    return InvalidField(
        v1::ERROR_REASON_ARGUMENT_COUNT, field,
        absl::StrCat("the function takes another number of inputs: ", std::string(row.name),
                     " takes ", row.arity, ", not ", arguments.size()),
        {{"function", std::string(row.name)}});
  }
  auto loop = ResolveLoop(row, TypesOf(arguments), data_type, field, casting);
  if (!loop.ok()) return loop.status();
  if (row.rule == TypeRule::kComparison) WidenComparison(arguments, &*loop);
  if (auto status = CheckIntegerPower(row, arguments, *loop, field); !status.ok()) return status;

  std::vector<Value> values;
  DType compute = ComputeType(row, loop->arguments.back());
  int exponent = row.arity == 2 ? SmallExponent(row, arguments[1], loop->arguments[0]) : 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (exponent != 0 && i == 1) break;
    auto value = Convert(builder, row, arguments[i], loop->arguments[i], field);
    if (!value.ok()) return value.status();
    values.push_back(builder.Cast(*value, ComputeType(row, value->dtype)));
  }
  if (row.rule == TypeRule::kLoadExponent) compute = values[0].dtype;
  if (exponent != 0) return builder.Cast(Multiplied(builder, values[0], exponent), loop->result);
  Value result = builder.Op(row.name, values, ResultOf(row, compute));
  return builder.Cast(result, loop->result);
}

absl::StatusOr<Value> ToValue(ProgramBuilder& builder, const Argument& argument,
                              std::string_view field) {
  if (const Value* value = std::get_if<Value>(&argument)) return *value;
  const WeakScalar& weak = std::get<WeakScalar>(argument);
  auto encoded = EncodeScalar(weak, ResolveWeak({ArgumentType(weak)})[0], field);
  if (!encoded.ok()) return encoded.status();
  return builder.Constant(*encoded);
}

}  // namespace stride::ops
