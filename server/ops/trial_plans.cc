#include "server/ops/trial_plans.h"

#include "server/ops/plan.h"
#include "server/ops/shape.h"
#include "server/store/array_info.h"

namespace stride::ops {
namespace {

// Large enough that no axis has length one, and small enough for 32-bit indices.
constexpr int64_t kExtent = 4;
constexpr int64_t kLength = 1024;

class OneFunction : public FunctionTable {
 public:
  explicit OneFunction(const ClientFunction& function) : function_(function) {}
  const ClientFunction* Find(std::string_view name) const override {
    return name == function_.id ? &function_ : nullptr;
  }

 private:
  const ClientFunction& function_;
};

bool HasText(const ClientFunction& function) {
  auto is_text = [](const FunctionBody& body) { return !body.device_function.source().empty(); };
  return is_text(function.body) || is_text(function.combine) ||
         (function.map && is_text(*function.map)) || (function.finish && is_text(*function.finish));
}

v1::Operation UseOf(const ClientFunction& function) {
  v1::Operation operation;
  switch (function.kind) {
    case ClientFunction::Kind::kUfunc:
      operation.mutable_ufunc()->set_function(function.id);
      for (size_t i = 0; i < function.num_inputs; ++i) operation.mutable_ufunc()->add_inputs();
      break;
    case ClientFunction::Kind::kReduction:
      operation.mutable_reduction()->set_function_name(function.id);
      for (size_t i = 1; i < function.num_inputs; ++i)
        operation.mutable_reduction()->add_more_inputs();
      break;
    case ClientFunction::Kind::kGufunc:
      operation.mutable_gufunc()->set_function(function.id);
      for (size_t i = 0; i < function.num_inputs; ++i) operation.mutable_gufunc()->add_inputs();
      break;
  }
  const size_t num_outputs = function.kind == ClientFunction::Kind::kGufunc
                                 ? function.layout.operands.size() - function.num_inputs
                                 : function.num_outputs;
  for (size_t j = 0; j < num_outputs; ++j) operation.add_outputs()->set_inline_result(true);
  return operation;
}

std::vector<Input> InputsOf(const ClientFunction& function, const ClientFunction::Loop& loop) {
  std::vector<Input> inputs;
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    Shape shape = {kLength};
    if (function.kind == ClientFunction::Kind::kGufunc) {
      for (int d : function.layout.operands[i])
        shape.push_back(function.layout.dimensions[d].fixed.value_or(kExtent));
    }
    inputs.emplace_back(Contiguous(loop.inputs[i], shape));
  }
  return inputs;
}

}  // namespace

absl::StatusOr<std::vector<wire::Code>> TrialCodes(const ClientFunction& function) {
  std::vector<wire::Code> codes;
  if (!HasText(function)) return codes;
  const v1::Operation operation = UseOf(function);
  for (const ClientFunction::Loop& loop : function.loops) {
    // Only this loop, so that no earlier loop matches its types.
    ClientFunction one = function;
    one.loops = {loop};
    const OneFunction table(one);
    const std::vector<Input> existing(static_cast<size_t>(operation.outputs_size()));
    auto plan = PlanOperation(operation, InputsOf(function, loop), existing, &table);
    if (!plan.ok()) return plan.status();
    if (plan->code) codes.push_back(*std::move(plan->code));
  }
  return codes;
}

}  // namespace stride::ops
