#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/planners.h"
#include "server/ops/rename_fields.h"
#include "server/ops/shape.h"

namespace stride::ops {

// A ufunc of the two inputs as views: the left one has axes of length one behind its own, one for
// each of the right's.
absl::StatusOr<Plan> PlanOuter(const v1::Outer& outer, Inputs inputs,
                               absl::Span<const Input> existing, const FunctionTable* functions) {
  v1::Ufunc ufunc;
  ufunc.set_function(outer.function());
  *ufunc.add_inputs() = outer.left();
  *ufunc.add_inputs() = outer.right();
  ufunc.set_data_type(outer.data_type());
  ufunc.set_casting(outer.casting());
  std::vector<Input> views(inputs.begin(), inputs.end());
  if (views[0] && views[1]) {
    const size_t rank = views[0]->shape.size() + views[1]->shape.size();
    if (rank > kMaxRank) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_LIMIT, "outer.right",
          absl::StrCat("the result would have ", rank, " axes; an array has at most ", kMaxRank));
    }
    views[0]->shape.resize(rank, 1);
    views[0]->strides.resize(rank, 0);
  }
  auto plan = PlanUfunc(ufunc, views, existing, functions);
  if (!plan.ok()) {
    return RenameFields(plan.status(), {{"ufunc.inputs[0]", "outer.left"},
                                        {"ufunc.inputs[1]", "outer.right"},
                                        {"ufunc.inputs", "outer"},
                                        {"ufunc.", "outer."}});
  }
  plan->task.set_label(absl::StrCat("outer ", outer.function()));
  return plan;
}

}  // namespace stride::ops
