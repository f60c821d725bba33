#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/operation_kind.h"
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

absl::Status BatchView(Batcher& batcher, v1::Operation* operation) {
  const Batched input = *batcher.Find(operation->view().input());
  const int64_t batch = batcher.size();
  Batched array = input;
  for (const v1::View::Step& given : operation->view().steps()) {
    v1::View::Step step = given;
    switch (given.kind_case()) {
      case v1::View::Step::kSlice: {
        auto axis = batcher.Shifted(given.slice().axis(), array.rank(), "view.steps");
        if (!axis.ok()) return axis.status();
        step.mutable_slice()->set_axis(*axis);
        break;
      }
      case v1::View::Step::kTranspose: {
        auto* axes = step.mutable_transpose()->mutable_axes();
        axes->Clear();
        axes->Add(0);
        const auto rank = static_cast<int32_t>(array.rank());
        for (int32_t i = 0; i < rank; ++i) {
          int32_t axis = rank - 1 - i;
          if (!given.transpose().axes().empty()) {
            if (given.transpose().axes_size() != rank) return batcher.NoRule(*operation);
            axis = given.transpose().axes(i);
          }
          axes->Add(axis < 0 ? axis + rank + 1 : axis + 1);
        }
        break;
      }
      case v1::View::Step::kReshape:
        step.mutable_reshape()->clear_shape();
        step.mutable_reshape()->add_shape(batch);
        step.mutable_reshape()->mutable_shape()->MergeFrom(given.reshape().shape());
        break;
      case v1::View::Step::kBroadcast: {
        auto aligned = batcher.WithRank(array, static_cast<size_t>(given.broadcast().shape_size()));
        if (!aligned.ok()) return aligned.status();
        array = *aligned;
        step.mutable_broadcast()->clear_shape();
        step.mutable_broadcast()->add_shape(batch);
        step.mutable_broadcast()->mutable_shape()->MergeFrom(given.broadcast().shape());
        break;
      }
      default:
        return batcher.NoRule(*operation);
    }
    auto viewed = batcher.ViewOf(array, step);
    if (!viewed.ok()) return viewed.status();
    array = *viewed;
  }
  batcher.SetResult(operation->outputs(0).handle(), std::move(array));
  operation->clear_kind();
  return absl::OkStatus();
}

}  // namespace

const OperationKind kViewKind = {
    .name = "view",
    .operands = Reads<&v1::Operation::view, &v1::View::input>,
    .plan = PlanBy<&v1::Operation::view, PlanView>,
    .rules = {OneResult, NoKey, BatchView, Undivided},
    .lists = Bounded<&v1::Operation::view, 256, &v1::View::steps_size>,
};

}  // namespace stride::ops
