#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/promotion.h"
#include "server/ops/range_length.h"

namespace stride::ops {
namespace {

constexpr char kRange[] = "creation.range";
constexpr char kLinearSpace[] = "creation.linear_space";

Value ConstantOf(ProgramBuilder& builder, const WeakScalar& value, DType dtype) {
  return builder.Constant(*EncodeScalar(value, dtype, "", OutOfRange::kSaturate));
}

absl::StatusOr<Plan> PlanFill(const v1::Creation::Fill& fill, const Input& existing) {
  auto spec = ReadSpec(fill.spec(), "creation.fill.spec");
  if (!spec.ok()) return spec.status();
  auto output = ChooseOutput(spec->dtype, spec->shape, existing);
  if (!output.ok()) return output.status();
  ScalarOperand scalar{Integer{0}, std::nullopt};
  if (fill.has_value()) {
    auto read = ReadScalar(fill.value(), "creation.fill.value");
    if (!read.ok()) return read.status();
    scalar = *read;
  }
  auto encoded = EncodeScalar(scalar.value, spec->dtype, "creation.fill.value");
  if (!encoded.ok()) return encoded.status();
  bool zero = encoded->value().find_first_not_of('\0') == std::string::npos;
  if (zero && output->IsContiguous() && output->dtype == spec->dtype) {
    Plan plan;
    plan.outputs.push_back(*output);
    auto* task = plan.task.mutable_zero_fill();
    task->set_arena(0);
    task->set_offset(static_cast<uint64_t>(output->offset));
    task->set_size(static_cast<uint64_t>(output->size_bytes()));
    plan.bytes = static_cast<double>(output->size_bytes());
    return plan;
  }
  ProgramBuilder builder;
  Value value = builder.Constant(*encoded);
  return PlanLoop(builder, value, {}, *output, "creation.fill");
}

// A task that writes nothing: the array has memory once it has run.
absl::StatusOr<Plan> PlanEmpty(const v1::Creation::Empty& empty, const Input& existing) {
  if (existing) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "outputs[0].existing",
                        "an array without values is new; leave `existing` unset");
  }
  auto spec = ReadSpec(empty.spec(), "creation.empty.spec");
  if (!spec.ok()) return spec.status();
  auto output = ChooseOutput(spec->dtype, spec->shape, existing);
  if (!output.ok()) return output.status();
  Plan plan;
  plan.outputs.push_back(*output);
  plan.task.mutable_zero_fill();
  return plan;
}

absl::StatusOr<WeakScalar> ReadOr(bool present, const v1::Scalar& scalar, Integer otherwise,
                                  const std::string& field, std::optional<DType>* common) {
  if (!present) return WeakScalar(otherwise);
  auto read = ReadScalar(scalar, field);
  if (!read.ok()) return read.status();
  if (std::holds_alternative<std::complex<double>>(read->value)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        "a range has real bounds; a complex number was given");
  }
  if (read->dtype) *common = *common ? PromoteTypes(**common, *read->dtype) : read->dtype;
  return read->value;
}

bool IsWeakInteger(const WeakScalar& value) { return std::holds_alternative<Integer>(value); }

// The type of NumPy's arange: of the bounds; weak integers alone give int64.
DType RangeType(std::optional<DType> exact, const WeakScalar& start, const WeakScalar& stop,
                const WeakScalar& step) {
  bool integers = IsWeakInteger(start) && IsWeakInteger(stop) && IsWeakInteger(step);
  DType weak = integers ? DType::kInt64 : DType::kFloat64;
  if (!exact) return weak;
  return integers || IsFloat(*exact) ? PromoteTypes(*exact, integers ? *exact : DType::kBool)
                                     : weak;
}

// Beyond every integer type it is cut, so that it still fits none and sums of it do not overflow.
Integer Truncated(double value) {
  constexpr double kBeyond = 0x1p66;
  return static_cast<Integer>(std::clamp(value, -kBeyond, kBeyond));
}

// start + index * (second - start), computed in the type itself as NumPy's fill does.
absl::StatusOr<Value> RangeValue(ProgramBuilder& builder, const WeakScalar& start,
                                 const WeakScalar& step, DType dtype, int64_t length) {
  const OpRow& add = *FindOp("add");
  const OpRow& multiply = *FindOp("multiply");
  const OpRow& subtract = *FindOp("subtract");
  if (length == 0) return ConstantOf(builder, Integer{0}, dtype);
  WeakScalar first = start, second;
  if (IsWeakInteger(start) && IsWeakInteger(step)) {
    second = std::get<Integer>(start) + std::get<Integer>(step);
  } else {
    second = RealOf(start) + RealOf(step);
    if (IsInteger(dtype)) {
      first = Truncated(RealOf(start));
      second = Truncated(std::get<double>(second));
    }
  }
  if (IsInteger(dtype)) {
    // Both ends must fit; what lies between does then.
    Integer last = std::get<Integer>(first) +
                   (length - 1) * (std::get<Integer>(second) - std::get<Integer>(first));
    for (Integer end : {std::get<Integer>(first), last}) {
      if (auto fits = EncodeScalar(end, dtype, kRange); !fits.ok()) return fits.status();
    }
  }
  // Integers wrap, so that a second element out of range (when there is none) does no harm.
  DType compute = ComputeType(dtype);
  Value low = ConstantOf(builder, first, dtype);
  Value delta;
  if (IsInteger(dtype)) {
    Integer difference = std::get<Integer>(second) - std::get<Integer>(first);
    delta = builder.Cast(ConstantOf(builder, difference, DType::kInt64), dtype);
  } else {
    Value high = ConstantOf(builder, second, dtype);
    delta = *Apply(builder, subtract, {builder.Cast(high, compute), builder.Cast(low, compute)},
                   std::nullopt, kRange);
  }
  Value index = builder.Cast(builder.Index(), compute);
  auto product = Apply(builder, multiply, {index, delta}, std::nullopt, kRange);
  if (!product.ok()) return product.status();
  return Apply(builder, add, {builder.Cast(low, compute), *product}, std::nullopt, kRange);
}

absl::StatusOr<Plan> PlanRange(const v1::Creation::Range& range, const Input& existing) {
  std::optional<DType> exact;
  if (!range.has_stop()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "creation.range.stop",
                        "the end of the range is missing");
  }
  auto start = ReadOr(range.has_start(), range.start(), 0, "creation.range.start", &exact);
  if (!start.ok()) return start.status();
  auto stop = ReadOr(true, range.stop(), 0, "creation.range.stop", &exact);
  if (!stop.ok()) return stop.status();
  auto step = ReadOr(range.has_step(), range.step(), 1, "creation.range.step", &exact);
  if (!step.ok()) return step.status();
  auto data_type = ReadDataType(range.data_type(), "creation.range.data_type");
  if (!data_type.ok()) return data_type.status();
  DType dtype = data_type->value_or(RangeType(exact, *start, *stop, *step));
  if (IsBool(dtype) || IsComplex(dtype)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "creation.range.data_type",
        absl::StrCat("a range is of integers or floats, not ", std::string(Name(dtype))));
  }
  auto length = RangeLength(*start, *stop, *step, kRange);
  if (!length.ok()) return length.status();
  auto output = ChooseOutput(dtype, {*length}, existing);
  if (!output.ok()) return output.status();
  ProgramBuilder builder;
  auto value = RangeValue(builder, *start, *step, dtype, *length);
  if (!value.ok()) return value.status();
  return PlanLoop(builder, *value, {}, *output, kRange);
}

absl::StatusOr<WeakScalar> ReadBound(bool present, const v1::Scalar& scalar, const char* name) {
  std::string field = absl::StrCat(kLinearSpace, ".", name);
  if (!present) return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, "the bound is missing");
  auto read = ReadScalar(scalar, field);
  if (!read.ok()) return read.status();
  return read->value;
}

bool IsComplexScalar(const WeakScalar& value) {
  return std::holds_alternative<std::complex<double>>(value);
}

std::complex<double> Widen(const WeakScalar& value) {
  return IsComplexScalar(value) ? std::get<std::complex<double>>(value) : RealOf(value);
}

// start + index * step, the last element exactly `stop`; integer types are rounded down.
absl::StatusOr<Value> LinearValue(ProgramBuilder& builder, const WeakScalar& start,
                                  const WeakScalar& stop, int64_t count, bool endpoint,
                                  DType dtype) {
  int64_t divisions = endpoint ? count - 1 : count;
  DType compute = IsComplexScalar(start) || IsComplexScalar(stop) || IsComplex(dtype)
                      ? DType::kComplex128
                      : DType::kFloat64;
  std::complex<double> delta = Widen(stop) - Widen(start);
  std::complex<double> step = divisions > 0 ? delta / static_cast<double>(divisions) : delta;
  auto constant = [&](std::complex<double> z) -> Value {
    return IsComplex(compute) ? ConstantOf(builder, z, compute)
                              : ConstantOf(builder, z.real(), compute);
  };
  auto apply = [&](const char* op, std::vector<Argument> arguments) {
    return Apply(builder, *FindOp(op), arguments, std::nullopt, kLinearSpace);
  };
  Value position = builder.Cast(builder.Index(), compute);
  absl::StatusOr<Value> moved;
  if (step == 0.0 && divisions > 0) {
    // The step underflows: divide last.
    moved = apply("divide", {position, constant(static_cast<double>(divisions))});
    if (moved.ok()) moved = apply("multiply", {*moved, constant(delta)});
  } else {
    moved = apply("multiply", {position, constant(step)});
  }
  if (moved.ok()) moved = apply("add", {*moved, constant(Widen(start))});
  if (moved.ok() && endpoint && count > 1) {
    Value last = ConstantOf(builder, Integer{count - 1}, DType::kInt64);
    auto is_last = apply("equal", {builder.Index(), last});
    moved = apply("where", {*is_last, constant(Widen(stop)), *moved});
  }
  if (moved.ok() && IsInteger(dtype)) moved = apply("floor", {*moved});
  return moved;
}

absl::StatusOr<Plan> PlanLinearSpace(const v1::Creation::LinearSpace& space,
                                     const Input& existing) {
  auto start = ReadBound(space.has_start(), space.start(), "start");
  if (!start.ok()) return start.status();
  auto stop = ReadBound(space.has_stop(), space.stop(), "stop");
  if (!stop.ok()) return stop.status();
  if (space.count() < 0) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "creation.linear_space.count",
        absl::StrCat("the number of elements must not be negative: ", space.count()));
  }
  auto data_type = ReadDataType(space.data_type(), "creation.linear_space.data_type");
  if (!data_type.ok()) return data_type.status();
  bool complex = IsComplexScalar(*start) || IsComplexScalar(*stop);
  DType dtype = data_type->value_or(complex ? DType::kComplex128 : DType::kFloat64);
  if (complex && !IsComplex(dtype)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "creation.linear_space.data_type",
        absl::StrCat("complex bounds need a complex type, not ", std::string(Name(dtype))));
  }
  auto output = ChooseOutput(dtype, {space.count()}, existing);
  if (!output.ok()) return output.status();
  ProgramBuilder builder;
  auto value = LinearValue(builder, *start, *stop, space.count(), !space.exclude_endpoint(), dtype);
  if (!value.ok()) return value.status();
  return PlanLoop(builder, builder.Cast(*value, dtype), {}, *output, kLinearSpace);
}

absl::StatusOr<Plan> PlanCreation(const v1::Creation& creation, const Input& existing) {
  switch (creation.kind_case()) {
    case v1::Creation::kFill:
      return PlanFill(creation.fill(), existing);
    case v1::Creation::kRange:
      return PlanRange(creation.range(), existing);
    case v1::Creation::kLinearSpace:
      return PlanLinearSpace(creation.linear_space(), existing);
    case v1::Creation::kRandom:
      return PlanRandom(creation.random(), existing);
    case v1::Creation::kEmpty:
      return PlanEmpty(creation.empty(), existing);
    case v1::Creation::KIND_NOT_SET:
      break;
  }
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "creation",
                      "say what to create: fill, range, linear_space, random or empty");
}

bool CreationKey(const OperationView& o, const TenantId& tenant, KeyWriter& key) {
  // A random number's place in its sequence does not come again.
  const v1::Creation& creation = o->creation();
  return (creation.has_empty() || creation.has_fill()) && WholeKey(o, tenant, key);
}

}  // namespace

const OperationKind kCreationKind = {
    .name = "creation",
    .label = "create",
    .operands = [](const v1::Operation&, OperandList&) {},
    .plan = PlanBy<&v1::Operation::creation, PlanCreation>,
    .rules = {OneResult, CreationKey, NoBatching, Undivided},
};

}  // namespace stride::ops
