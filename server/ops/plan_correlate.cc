#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

absl::StatusOr<ArrayInfo> ReadVector(const Input& input, std::string_view field) {
  auto array = NeedArray(input, field);
  if (!array.ok()) return array.status();
  if (array->shape.size() == 1 && array->shape[0] > 0) return array;
  return InvalidField(
      v1::ERROR_REASON_SHAPE_MISMATCH, field,
      absl::StrCat("a row has one axis and at least one element, not ", ToString(array->shape)));
}

// Where the result begins and ends: at the number that is added to an index of the right row to get
// the left one's.
struct Shifts {
  int64_t first, count;
};
absl::StatusOr<Shifts> ShiftsOf(v1::Correlate::Mode mode, int64_t n, int64_t m) {
  switch (mode) {
    case v1::Correlate::MODE_UNSPECIFIED:
    case v1::Correlate::MODE_VALID:
      return Shifts{std::min<int64_t>(n - m, 0), std::max(n, m) - std::min(n, m) + 1};
    case v1::Correlate::MODE_SAME:
      return Shifts{n >= m ? -(m / 2) : -(m - 1 - n / 2), std::max(n, m)};
    case v1::Correlate::MODE_FULL:
      return Shifts{-(m - 1), n + m - 1};
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "correlate.mode",
                          absl::StrCat("no such mode: ", static_cast<int>(mode),
                                       "; there are valid, same and full"));
  }
}

// The element in the type of the sums; the second row's with its complex conjugate.
wire::RoutineCode::ProgramCode ElementProgram(DType from, DType common, DType accumulator,
                                              bool conjugate) {
  ProgramBuilder builder;
  Value value = builder.Cast(builder.Input(0, from), common);
  if (conjugate) value = builder.Op("conjugate", {value}, common);
  return MakeProgram(builder, builder.Cast(value, accumulator));
}

RoutineOperand Row(const ArrayInfo& array, uint32_t slot) {
  RoutineOperand operand{.slot = slot, .array = array};
  operand.AddOwn(0);
  return operand;
}

absl::StatusOr<Plan> PlanCorrelate(const v1::Correlate& correlate, Inputs inputs,
                                   const Input& existing) {
  auto left = ReadVector(inputs[0], "correlate.left");
  if (!left.ok()) return left.status();
  auto right = ReadVector(inputs[1], "correlate.right");
  if (!right.ok()) return right.status();
  uint32_t left_slot = 0, right_slot = 1;
  if (correlate.convolve()) {
    // The shorter row backwards is what goes along the longer one.
    if (right->shape[0] > left->shape[0]) {
      std::swap(*left, *right);
      std::swap(left_slot, right_slot);
    }
    right->offset += (right->shape[0] - 1) * right->strides[0];
    right->strides[0] = -right->strides[0];
  }
  auto shifts = ShiftsOf(correlate.mode(), left->shape[0], right->shape[0]);
  if (!shifts.ok()) return shifts.status();
  const DType common = PromoteTypes(left->dtype, right->dtype);
  auto output = ChooseOutput(common, {shifts->count}, existing);
  if (!output.ok()) return output.status();
  auto add = FindBinaryFunction(
      {.name = "add", .input = common, .keeps_type = true, .field = "correlate.left"}, nullptr);
  if (!add.ok()) return add.status();
  auto multiply = FindBinaryFunction(
      {.name = "multiply", .input = common, .keeps_type = true, .field = "correlate.left"},
      nullptr);
  if (!multiply.ok()) return multiply.status();
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_CORRELATE;
  spec.operands = {Row(*left, left_slot), Row(*right, right_slot), Row(*output, 2)};
  spec.num_inputs = 2;
  const bool conjugate = !correlate.convolve() && IsComplex(common);
  spec.programs = {ElementProgram(left->dtype, common, add->accumulator, false),
                   ElementProgram(right->dtype, common, add->accumulator, conjugate),
                   CombineCode(*multiply), CombineCode(*add),
                   CastProgram({add->accumulator, common, output->dtype})};
  auto first = EncodeScalar(Integer{shifts->first}, DType::kInt64, "correlate.mode");
  if (!first.ok()) return first.status();
  spec.scalars = {*first, *add->identity};
  spec.outputs = {*output};
  const double products = static_cast<double>(shifts->count) *
                          static_cast<double>(std::min(left->shape[0], right->shape[0]));
  Plan plan = MakeRoutinePlan(std::move(spec));
  plan.flops = 2 * products;
  return plan;
}

}  // namespace

const OperationKind kCorrelateKind = {
    .name = "correlate",
    .detail = [](const v1::Operation& o) -> std::string {
      return o.correlate().convolve() ? "convolve" : "correlate";
    },
    .operands = Reads<&v1::Operation::correlate, &v1::Correlate::left, &v1::Correlate::right>,
    .plan = PlanBy<&v1::Operation::correlate, PlanCorrelate>,
    .rules = {OneResult, WholeKey, NoBatching, Undivided},
};

}  // namespace stride::ops
