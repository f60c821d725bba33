#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kValues[] = "group_reduce.values";
constexpr char kGroups[] = "group_reduce.groups";

WeakScalar Extreme(DType dtype, bool lowest) {
  if (IsBool(dtype)) return Integer{lowest ? 0 : 1};
  if (!IsInteger(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (IsComplex(dtype)) return std::complex<double>(1, 1) * (lowest ? -infinity : infinity);
    return lowest ? -infinity : infinity;
  }
  const int bits = static_cast<int>(8 * ItemSize(dtype));
  if (IsUnsigned(dtype)) return lowest ? Integer{0} : (Integer{1} << bits) - 1;
  return lowest ? -(Integer{1} << (bits - 1)) : (Integer{1} << (bits - 1)) - 1;
}

// The result of a group without elements: the function's identity.
absl::StatusOr<wire::ScalarValue> OfNoElements(const BinaryFunction& function) {
  if (function.identity) return *function.identity;
  const std::string& name = function.name;
  const DType dtype = function.accumulator;
  if (name == "minimum" || name == "maximum")
    return EncodeScalar(Extreme(dtype, name == "maximum"), dtype, "");
  if (name == "fmin" || name == "fmax") {
    if (IsFloat(dtype)) return EncodeScalar(std::numeric_limits<double>::quiet_NaN(), dtype, "");
    return EncodeScalar(Extreme(dtype, name == "fmax"), dtype, "");
  }
  if (name == "lcm") return EncodeScalar(Integer{1}, dtype, "");
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "group_reduce.function",
                      absl::StrCat("a group without elements needs a value, and the function has "
                                   "no identity: ",
                                   name));
}

// The values, which are an array or one number.
struct Values {
  std::optional<ArrayInfo> array;
  std::optional<WeakScalar> number;
  DType dtype = DType::kInt64;
};

absl::StatusOr<Values> ReadValues(const v1::GroupReduce& operation, const Input& input) {
  if (input) return Values{.array = *input, .dtype = input->dtype};
  auto scalar = ReadScalar(operation.values().scalar(), kValues);
  if (!scalar.ok()) return scalar.status();
  const DType dtype = scalar->dtype.value_or(ResolveWeak({ArgumentType(scalar->value)})[0]);
  return Values{.number = scalar->value, .dtype = dtype};
}

// Groups of the values' axis, and how many of them.
absl::Status CheckGroups(const v1::GroupReduce& operation, const ArrayInfo& groups,
                         const Values& values, size_t axis) {
  if (groups.shape.size() != 1 || !IsInteger(groups.dtype)) {
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, kGroups,
                        "the groups are integers along one axis");
  }
  if (values.array && values.array->shape[axis] != groups.shape[0]) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, kGroups,
                        absl::StrCat("each element along the axis has a group. Elements: ",
                                     values.array->shape[axis], ", groups: ", groups.shape[0]));
  }
  const int64_t count = operation.num_groups();
  if (count > 0 || (count == 0 && groups.shape[0] == 0)) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "group_reduce.num_groups",
                      absl::StrCat("elements need a group. num_groups: ", count));
}

absl::StatusOr<Plan> PlanGroupReduce(const v1::GroupReduce& operation, Inputs inputs,
                                     const Input& existing, const FunctionTable* functions) {
  auto values = ReadValues(operation, inputs[0]);
  if (!values.ok()) return values.status();
  auto groups = NeedArray(inputs[1], kGroups);
  if (!groups.ok()) return groups.status();
  const size_t rank = values->array ? values->array->shape.size() : 1;
  auto axis = NormalizeAxis(operation.axis(), rank, "group_reduce.axis");
  if (!axis.ok()) return axis.status();
  if (auto s = CheckGroups(operation, *groups, *values, *axis); !s.ok()) return s;
  auto data_type = ReadDataType(operation.data_type(), "group_reduce.data_type");
  if (!data_type.ok()) return data_type.status();
  auto function = FindBinaryFunction({.name = operation.function(),
                                      .input = values->dtype,
                                      .data_type = *data_type,
                                      .field = "group_reduce.function",
                                      .input_field = kValues},
                                     functions);
  if (!function.ok()) return function.status();
  auto empty = OfNoElements(*function);
  if (!empty.ok()) return empty.status();
  Shape shape = values->array ? values->array->shape : Shape{0};
  shape[*axis] = operation.num_groups();
  auto output = ChooseOutput(function->dtype, shape, existing);
  if (!output.ok()) return output.status();

  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_GROUP_REDUCE;
  spec.extents = shape;
  spec.extents[*axis] = 1;
  const DType dtype = function->dtype, accumulator = function->accumulator;
  RoutineOperand group{.slot = 1, .array = *groups};
  group.strides.assign(rank, 0);
  group.AddOwn(0);
  RoutineOperand to{
      .slot = 2, .array = *output, .strides = StridesWithout(*output, *axis, *axis + 1)};
  to.AddOwn(*axis);
  spec.operands.push_back(std::move(group));
  spec.scalars.push_back(*empty);
  if (values->array) {
    RoutineOperand from{.slot = 0,
                        .array = *values->array,
                        .strides = StridesWithout(*values->array, *axis, *axis + 1)};
    from.AddOwn(*axis);
    spec.operands.push_back(std::move(from));
    spec.programs = {CastProgram({values->dtype, dtype, accumulator})};
  } else {
    auto number = EncodeScalar(*values->number, accumulator, kValues);
    if (!number.ok()) return number.status();
    spec.scalars.push_back(*number);
    spec.programs = {CastProgram({accumulator})};
  }
  spec.operands.push_back(std::move(to));
  spec.num_inputs = static_cast<int>(spec.operands.size()) - 1;
  spec.programs.push_back(CombineCode(*function));
  spec.programs.push_back(CastProgram({accumulator, dtype, output->dtype}));
  const bool counts = !values->array && function->name == "add" && IsInteger(function->accumulator);
  spec.options = {values->array.has_value(), function->associative, counts};
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::Status BatchGroupReduce(Batcher& batcher, v1::Operation* operation) {
  auto* group = operation->mutable_group_reduce();
  if (batcher.IsBatched(group->groups())) return batcher.NoRule(*operation);
  const size_t rank = batcher.Find(group->values())->rank();
  return batcher.SetShifted(group, group->axis(), rank, "group_reduce.axis");
}

}  // namespace

const OperationKind kGroupReduceKind = {
    .name = "group_reduce",
    .label = "group ",
    .detail = [](const v1::Operation& o) -> std::string { return o.group_reduce().function(); },
    .operands =
        Reads<&v1::Operation::group_reduce, &v1::GroupReduce::values, &v1::GroupReduce::groups>,
    .plan = PlanBy<&v1::Operation::group_reduce, PlanGroupReduce>,
    .rules = {OneResult, WholeKey, BatchGroupReduce, Undivided},
};

}  // namespace stride::ops
