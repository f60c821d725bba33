#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/planners.h"
#include "server/ops/view_steps.h"

namespace stride::ops {
namespace {

absl::StatusOr<ArrayInfo> ApplyStep(ArrayInfo array, const v1::View::Step& step,
                                    const std::string& field) {
  switch (step.kind_case()) {
    case v1::View::Step::kSlice:
      return ApplySlice(std::move(array), step.slice(), field + ".slice");
    case v1::View::Step::kTranspose:
      return ApplyTranspose(std::move(array), step.transpose(), field + ".transpose");
    case v1::View::Step::kReshape:
      return ApplyReshape(std::move(array), step.reshape(), field + ".reshape");
    case v1::View::Step::kBroadcast:
      return ApplyBroadcast(std::move(array), step.broadcast(), field + ".broadcast");
    case v1::View::Step::KIND_NOT_SET:
      break;
  }
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      "the step is empty: slice, transpose, reshape or broadcast");
}

}  // namespace

absl::StatusOr<Plan> PlanView(const v1::View& view, Inputs inputs, const Input& existing) {
  if (!inputs[0]) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "view.input", "a view needs an array");
  }
  if (existing) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "outputs[0].existing",
        "a view is a new array; to write its elements into an existing one, copy it");
  }
  ArrayInfo array = *inputs[0];
  for (int i = 0; i < view.steps_size(); ++i) {
    auto next = ApplyStep(std::move(array), view.steps(i), absl::StrCat("view.steps[", i, "]"));
    if (!next.ok()) return next.status();
    array = *std::move(next);
  }
  Plan plan;
  plan.outputs.push_back(std::move(array));
  plan.is_view = true;
  return plan;
}

}  // namespace stride::ops
