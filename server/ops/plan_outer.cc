#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/operation_kind.h"
#include "server/ops/rename_fields.h"
#include "server/ops/shape.h"

namespace stride::ops {

// A ufunc of the two inputs as views: the left one has axes of length one after its own, one for
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
  return plan;
}

namespace {

// A ufunc of views: the left one has axes of length one after its own, one for each of the
// right's.
absl::Status BatchOuter(Batcher& batcher, v1::Operation* operation) {
  const v1::Outer outer = operation->outer();
  const Batched left = *batcher.Find(outer.left()), right = *batcher.Find(outer.right());
  Shape shape = left.info.shape;
  shape.insert(shape.end(), right.rank(), 1);
  auto first = batcher.Reshaped(left, shape);
  if (!first.ok()) return first.status();
  auto second = batcher.WithRank(right, left.rank() + right.rank());
  if (!second.ok()) return second.status();
  v1::Ufunc* ufunc = operation->mutable_ufunc();
  ufunc->set_function(outer.function());
  ufunc->set_data_type(outer.data_type());
  ufunc->set_casting(outer.casting());
  batcher.Replace(ufunc->add_inputs(), *first);
  batcher.Replace(ufunc->add_inputs(), *second);
  batcher.AllReplaced(ufunc->mutable_inputs());
  return absl::OkStatus();
}

int OuterResults(const v1::Operation& o, Inputs, const FunctionTable* functions) {
  return NumUfuncResults(o.outer().function(), functions);
}

}  // namespace

const OperationKind kOuterKind = {
    .name = "outer",
    .label = "outer ",
    .detail = [](const v1::Operation& o) -> std::string { return o.outer().function(); },
    .operands = Reads<&v1::Operation::outer, &v1::Outer::left, &v1::Outer::right>,
    .plan = PlanBy<&v1::Operation::outer, PlanOuter>,
    .rules = {OuterResults, WholeKey, BatchOuter, Undivided},
};

}  // namespace stride::ops
