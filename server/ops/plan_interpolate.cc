#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

absl::Status CheckRealPlaces(const ArrayInfo& array, std::string_view field) {
  if (!IsComplex(array.dtype)) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
                      "places on a line are real numbers, not complex ones");
}

absl::Status CheckKnown(const ArrayInfo& known, const ArrayInfo& values) {
  if (known.shape.size() != 1 || known.shape[0] < 1) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, "interpolate.known",
        absl::StrCat("known places are one or more along one axis, not ", ToString(known.shape)));
  }
  if (values.shape != known.shape) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "interpolate.values",
                        absl::StrCat("each known place has one value: ", ToString(values.shape),
                                     " for ", ToString(known.shape)));
  }
  return absl::OkStatus();
}

// Zero where it is not given, which the routine does not read.
absl::Status AddEnd(bool given, const v1::Scalar& end, DType dtype, std::string_view field,
                    RoutineSpec* spec) {
  WeakScalar value = 0.0;
  if (given) {
    auto read = ReadScalar(end, field);
    if (!read.ok()) return read.status();
    value = read->value;
  }
  auto encoded = EncodeScalar(value, dtype, field);
  if (!encoded.ok()) return encoded.status();
  spec->scalars.push_back(*encoded);
  spec->options.push_back(given);
  return absl::OkStatus();
}

absl::StatusOr<Plan> PlanInterpolate(const v1::Interpolate& interpolate, Inputs inputs,
                                     const Input& existing) {
  auto input = NeedArray(inputs[0], "interpolate.input");
  if (!input.ok()) return input.status();
  auto known = NeedArray(inputs[1], "interpolate.known");
  if (!known.ok()) return known.status();
  auto values = NeedArray(inputs[2], "interpolate.values");
  if (!values.ok()) return values.status();
  if (auto s = CheckRealPlaces(*input, "interpolate.input"); !s.ok()) return s;
  if (auto s = CheckRealPlaces(*known, "interpolate.known"); !s.ok()) return s;
  if (auto s = CheckKnown(*known, *values); !s.ok()) return s;
  const DType dtype = IsComplex(values->dtype) ? DType::kComplex128 : DType::kFloat64;
  auto output = ChooseOutput(dtype, input->shape, existing);
  if (!output.ok()) return output.status();
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_INTERPOLATE;
  spec.extents = input->shape;
  RoutineOperand places{.slot = 1, .array = *known}, heights{.slot = 2, .array = *values};
  for (RoutineOperand* operand : {&places, &heights}) {
    operand->AddOwn(0);
    operand->strides.assign(input->shape.size(), 0);
  }
  spec.operands = {{.slot = 0, .array = *input, .strides = input->strides},
                   std::move(places),
                   std::move(heights),
                   {.slot = 3, .array = *output, .strides = output->strides}};
  spec.num_inputs = 3;
  spec.programs = {CastProgram({input->dtype, DType::kFloat64}),
                   CastProgram({known->dtype, DType::kFloat64}),
                   CastProgram({values->dtype, dtype})};
  if (auto s = AddEnd(interpolate.has_left(), interpolate.left(), dtype, "interpolate.left", &spec);
      !s.ok())
    return s;
  if (auto s =
          AddEnd(interpolate.has_right(), interpolate.right(), dtype, "interpolate.right", &spec);
      !s.ok())
    return s;
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::Status BatchInterpolate(Batcher& batcher, v1::Operation* operation) {
  const v1::Interpolate& interpolate = operation->interpolate();
  const bool own =
      batcher.IsBatched(interpolate.known()) || batcher.IsBatched(interpolate.values());
  return own ? batcher.NoRule(*operation) : absl::OkStatus();
}

}  // namespace

const OperationKind kInterpolateKind = {
    .name = "interpolate",
    .label = "interp",
    .operands = Reads<&v1::Operation::interpolate, &v1::Interpolate::input, &v1::Interpolate::known,
                      &v1::Interpolate::values>,
    .plan = PlanBy<&v1::Operation::interpolate, PlanInterpolate>,
    .rules = {OneResult, WholeKey, BatchInterpolate, Undivided},
};

}  // namespace stride::ops
