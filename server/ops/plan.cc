#include "server/ops/plan.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/ops/client_function.h"
#include "server/ops/op_table.h"
#include "server/ops/planners.h"
#include "server/ops/shape.h"
#include "server/ops/sharding.h"

namespace stride::ops {
namespace {

int NumResults(const v1::Operation& operation, Inputs inputs, const FunctionTable* functions) {
  if (operation.has_gufunc()) return NumGufuncResults(operation.gufunc(), functions);
  if (operation.has_ufunc()) return NumUfuncResults(operation.ufunc(), functions);
  if (operation.has_outer()) {
    v1::Ufunc ufunc;
    ufunc.set_function(operation.outer().function());
    return NumUfuncResults(ufunc, functions);
  }
  if (operation.has_nonzero() && inputs[0]) return static_cast<int>(inputs[0]->shape.size());
  if (operation.has_top_k()) return 2;
  if (operation.has_linalg()) return NumLinalgResults(operation.linalg());
  if (operation.has_loop() || operation.has_branch()) return operation.outputs_size();
  return 1;
}

absl::Status CheckCounts(const v1::Operation& operation, Inputs inputs,
                         const FunctionTable* functions) {
  if (inputs.size() != CollectOperands(operation).size()) {
    return absl::InternalError("PlanOperation: one input is due for each of CollectOperands");
  }
  if (operation.kind_case() == v1::Operation::kKernelLaunch) {
    if (operation.outputs().empty()) return absl::OkStatus();
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                        "a kernel's outputs are among its arguments; leave outputs empty");
  }
  const int results = NumResults(operation, inputs, functions);
  if (operation.outputs_size() == results) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                      absl::StrCat("the operation has ",
                                   results == 1 ? "one result" : absl::StrCat(results, " results"),
                                   "; outputs has ", operation.outputs_size()));
}

// Arrays that other layers made may not exceed what the planners count on.
absl::Status CheckRanks(const v1::Operation& operation, Inputs inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || inputs[i]->shape.size() <= kMaxRank) continue;
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, CollectOperands(operation)[i].field,
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

absl::StatusOr<Plan> PlanAny(const v1::Operation& operation, absl::Span<const Input> inputs,
                             absl::Span<const Input> existing, const FunctionTable* functions) {
  if (operation.kind_case() == v1::Operation::KIND_NOT_SET) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                        "the operation is empty; set one of its kinds");
  }
  if (auto status = CheckCounts(operation, inputs, functions); !status.ok()) return status;
  if (auto status = CheckRanks(operation, inputs); !status.ok()) return status;
  const Input output = existing.empty() ? Input() : existing[0];
  switch (operation.kind_case()) {
    case v1::Operation::kUfunc:
      return PlanUfunc(operation.ufunc(), inputs, existing, functions);
    case v1::Operation::kExpression:
      return PlanExpression(operation.expression(), inputs, output, functions);
    case v1::Operation::kReduction:
      return PlanReduction(operation.reduction(), inputs, output, functions);
    case v1::Operation::kMatmul:
      return PlanMatmul(operation.matmul(), inputs, output);
    case v1::Operation::kKernelLaunch:
      return PlanKernel(operation.kernel_launch(), inputs, existing);
    case v1::Operation::kCreation:
      return PlanCreation(operation.creation(), output);
    case v1::Operation::kCopy:
      return PlanCopy(operation.copy(), inputs, output);
    case v1::Operation::kView:
      return PlanView(operation.view(), inputs, output);
    case v1::Operation::kAccumulation:
      return PlanAccumulation(operation.accumulation(), inputs, output, functions);
    case v1::Operation::kGather:
      return PlanGather(operation.gather(), inputs, output);
    case v1::Operation::kScatter:
      return PlanScatter(operation.scatter(), inputs, output);
    case v1::Operation::kCompress:
      return PlanCompress(operation.compress(), inputs, output);
    case v1::Operation::kNonzero:
      return PlanNonzero(operation.nonzero(), inputs, existing);
    case v1::Operation::kSort:
      return PlanSort(operation.sort(), inputs, output);
    case v1::Operation::kTopK:
      return PlanTopK(operation.top_k(), inputs, existing);
    case v1::Operation::kSelect:
      return PlanSelect(operation.select(), inputs, output);
    case v1::Operation::kPartition:
      return PlanPartition(operation.partition(), inputs, output);
    case v1::Operation::kInterpolate:
      return PlanInterpolate(operation.interpolate(), inputs, output);
    case v1::Operation::kCorrelate:
      return PlanCorrelate(operation.correlate(), inputs, output);
    case v1::Operation::kHistogram:
      return PlanHistogram(operation.histogram(), inputs, output);
    case v1::Operation::kGroupReduce:
      return PlanGroupReduce(operation.group_reduce(), inputs, output, functions);
    case v1::Operation::kSearch:
      return PlanSearch(operation.search(), inputs, output);
    case v1::Operation::kLinalg:
      return PlanLinalg(operation.linalg(), inputs, existing);
    case v1::Operation::kFft:
      return PlanFft(operation.fft(), inputs, output);
    case v1::Operation::kReduceAt:
      return PlanReduceAt(operation.reduce_at(), inputs, output, functions);
    case v1::Operation::kOuter:
      return PlanOuter(operation.outer(), inputs, existing, functions);
    case v1::Operation::kApplyAt:
      return PlanApplyAt(operation.apply_at(), inputs, output, functions);
    case v1::Operation::kGufunc:
      return PlanGufunc(operation.gufunc(), inputs, existing, functions);
    case v1::Operation::kLoop:
    case v1::Operation::kBranch:
      return NotImplemented(KindName(operation),
                            absl::StrCat("a ", KindName(operation),
                                         " runs within a program alone: CreateProgram, then a "
                                         "ProgramCall"));
    default:
      return NotImplemented("operation", "this kind of operation is not implemented yet");
  }
}

}  // namespace

absl::StatusOr<Plan> PlanOperation(const v1::Operation& operation, absl::Span<const Input> inputs,
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
