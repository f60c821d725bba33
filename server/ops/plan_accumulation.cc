#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kFunction[] = "accumulation.function";
constexpr char kInput[] = "accumulation.input";

absl::StatusOr<const OpRow*> FindFunction(const std::string& name) {
  const OpRow* row = FindOp(name);
  if (row != nullptr && row->arity == 2) return row;
  const bool known = row != nullptr || FindTwoOutputUfunc(name) != nullptr;
  return InvalidField(
      known ? v1::ERROR_REASON_INVALID_FIELD : v1::ERROR_REASON_UNKNOWN_FUNCTION, kFunction,
      absl::StrCat(known ? "only a function of two inputs and one result accumulates: "
                         : "no such function: ",
                   name),
      {{"function", name}});
}

// Whether values may be combined in any grouping, so that threads can share a row.
bool IsAssociative(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "add",        "multiply",    "maximum",     "minimum",    "fmax",        "fmin",
      "logical_or", "logical_and", "logical_xor", "bitwise_or", "bitwise_and", "bitwise_xor",
      "gcd",        "lcm",         "hypot",       "logaddexp",  "logaddexp2"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The type in which the function's inputs and result agree.
absl::StatusOr<DType> TypeOf(const OpRow& row, DType input, std::optional<DType> data_type) {
  const bool sums = row.name == "add" || row.name == "multiply";
  if (!data_type && sums && (IsBool(input) || IsInteger(input)))
    return IsUnsigned(input) ? DType::kUInt64 : DType::kInt64;
  if (row.rule == TypeRule::kLogical && data_type.value_or(DType::kBool) == DType::kBool)
    return DType::kBool;
  auto loop = ResolveLoop(row, {input, input}, data_type, kInput);
  if (!loop.ok()) return loop.status();
  if (loop->arguments[0] == loop->result && loop->arguments[1] == loop->result) return loop->result;
  return InvalidField(
      v1::ERROR_REASON_DATA_TYPE_MISMATCH, kFunction,
      absl::StrCat(
          "the function's result has another type than its inputs: ", std::string(row.name), " of ",
          std::string(Name(loop->arguments[1])), " gives ", std::string(Name(loop->result))));
}

absl::StatusOr<wire::ScalarValue> Identity(const OpRow& row, DType dtype) {
  if (row.identity.empty()) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "accumulation.include_initial",
        absl::StrCat("the function has no identity to begin with: ", std::string(row.name)));
  }
  if (row.identity == "-inf")
    return EncodeScalar(-std::numeric_limits<double>::infinity(), dtype, kFunction);
  // All ones, whatever the width.
  if (row.identity == "-1" && (IsBool(dtype) || IsUnsigned(dtype))) {
    const Integer ones = IsBool(dtype) ? Integer{1} : (Integer{1} << (8 * ItemSize(dtype))) - 1;
    return EncodeScalar(ones, dtype, kFunction);
  }
  if (row.identity == "-1") return EncodeScalar(Integer{-1}, dtype, kFunction);
  const bool one = row.identity == "1" || row.identity == "true";
  return EncodeScalar(Integer{one ? 1 : 0}, dtype, kFunction);
}

absl::StatusOr<size_t> AxisOf(const v1::Accumulation& accumulation, size_t rank) {
  if (accumulation.has_axis() || rank == 0)
    return NormalizeAxis(accumulation.axis(), rank, "accumulation.axis");
  if (rank == 1) return size_t{0};
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "accumulation.axis",
                      absl::StrCat("say along which of the axes; there are ", rank));
}

}  // namespace

absl::StatusOr<Plan> PlanAccumulation(const v1::Accumulation& accumulation, Inputs inputs,
                                      const Input& existing) {
  auto row = FindFunction(accumulation.function());
  if (!row.ok()) return row.status();
  auto input = NeedArray(inputs[0], kInput);
  if (!input.ok()) return input.status();
  auto data_type = ReadDataType(accumulation.data_type(), "accumulation.data_type");
  if (!data_type.ok()) return data_type.status();
  auto dtype = TypeOf(**row, input->dtype, *data_type);
  if (!dtype.ok()) return dtype.status();
  auto axis = AxisOf(accumulation, input->shape.size());
  if (!axis.ok()) return axis.status();

  RoutineSpec spec;
  const DType accumulator = ComputeType(**row, *dtype);
  Shape shape = input->shape;
  if (accumulation.include_initial()) {
    auto identity = Identity(**row, accumulator);
    if (!identity.ok()) return identity.status();
    spec.scalars.push_back(*identity);
    ++shape[*axis];
  }
  auto output = ChooseOutput(*dtype, shape, existing);
  if (!output.ok()) return output.status();

  ProgramBuilder combine;
  Value left = combine.Input(0, accumulator), right = combine.Input(1, accumulator);
  spec.routine = wire::RoutineCode::ROUTINE_ACCUMULATE;
  spec.programs = {CastProgram({input->dtype, *dtype, accumulator}),
                   MakeProgram(combine, combine.Op((*row)->name, {left, right}, accumulator)),
                   CastProgram({accumulator, *dtype, output->dtype})};
  spec.options = {accumulation.include_initial(), IsAssociative((*row)->name)};
  spec.extents = input->shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}, {.slot = 1, .array = *output}};
  for (RoutineOperand& operand : spec.operands) {
    operand.strides = StridesWithout(operand.array, *axis, *axis + 1);
    operand.AddOwn(*axis);
  }
  spec.num_inputs = 1;
  spec.outputs = {*output};
  spec.label = absl::StrCat("accumulate ", std::string((*row)->name));
  return MakeRoutinePlan(std::move(spec));
}

}  // namespace stride::ops
