#include "server/ops/plan.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/ops/client_function.h"
#include "server/ops/operation_kind.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

absl::Status CheckNumResults(const OperationView& operation, Inputs inputs,
                             const FunctionTable* functions) {
  const int results = operation.kind().rules.num_results(*operation, inputs, functions);
  if (operation->outputs_size() == results) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                      absl::StrCat("the operation has ",
                                   results == 1 ? "one result" : absl::StrCat(results, " results"),
                                   "; outputs has ", operation->outputs_size()));
}

// Arrays that other layers made may not exceed what the planners count on.
absl::Status CheckRanks(const OperationView& operation, Inputs inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || inputs[i]->shape.size() <= kMaxRank) continue;
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, operation.OperandPath(i),
                        absl::StrCat("an array has at most ", kMaxRank, " axes"));
  }
  return absl::OkStatus();
}

// Notes for which kinds of device the functions that a planner looks up were made.
class NotingTable : public FunctionTable {
 public:
  explicit NotingTable(const FunctionTable& table) : table_(table) {}
  const ClientFunction* Find(std::string_view name) const override {
    const ClientFunction* function = table_.Find(name);
    if (function != nullptr && !function->device_kind.empty()) kinds_.insert(function->device_kind);
    return function;
  }
  const std::set<std::string>& kinds() const { return kinds_; }

 private:
  const FunctionTable& table_;
  mutable std::set<std::string> kinds_;
};

absl::StatusOr<Plan> PlanAny(const OperationView& operation, absl::Span<const Input> inputs,
                             absl::Span<const Input> existing, const FunctionTable* functions) {
  if (inputs.size() != operation.operands().size())
    return absl::InternalError("PlanOperation: one input is due for each operand");
  if (auto status = CheckLists(operation); !status.ok()) return status;
  if (auto status = CheckNumResults(operation, inputs, functions); !status.ok()) return status;
  if (auto status = CheckRanks(operation, inputs); !status.ok()) return status;
  auto plan = operation.kind().plan(*operation, inputs, existing, functions);
  if (plan.ok()) plan->task.set_label(operation.label());
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanOperation(const OperationView& operation, absl::Span<const Input> inputs,
                                   absl::Span<const Input> existing,
                                   const FunctionTable* functions) {
  if (functions == nullptr) return PlanAny(operation, inputs, existing, nullptr);
  const NotingTable noting(*functions);
  absl::StatusOr<Plan> plan = PlanAny(operation, inputs, existing, &noting);
  if (!plan.ok() || noting.kinds().empty()) return plan;
  if (noting.kinds().size() > 1) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                     absl::StrCat("the operation uses functions that were made for devices of "
                                  "different kinds: ",
                                  absl::StrJoin(noting.kinds(), ", ")));
  }
  plan->required_kind = *noting.kinds().begin();
  return plan;
}

}  // namespace stride::ops
