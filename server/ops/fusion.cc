#include "server/ops/fusion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/ops/elementwise.h"
#include "server/ops/expression_lowering.h"
#include "server/ops/op_table.h"
#include "server/ops/planners.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

// Operations in one loop: beyond this compilers take long and nothing is won.
constexpr int kMaxFused = 64;
constexpr size_t kMaxOperands = 32;

// A loop of one result without a mask, typed by its operands alone or by `data_type`.
bool IsPlainLoop(const ProgramStep& step) {
  const v1::Operation& operation = step.operation;
  if (!step.plan || !step.plan->task.has_elementwise()) return false;
  if (step.outputs.size() != 1 || step.existing[0]) return false;
  if (operation.has_ufunc()) return !operation.ufunc().has_where();
  return operation.has_expression() &&
         operation.expression().data_type() == v1::DATA_TYPE_UNSPECIFIED;
}

// A reduction that may compute its elements as it reads them.
bool ReadsElements(const ProgramStep& step) {
  const v1::Operation& operation = step.operation;
  if (!operation.has_reduction() || !step.plan || !step.plan->task.has_reduce()) return false;
  const v1::Reduction& reduction = operation.reduction();
  return step.outputs.size() == 1 && !step.existing[0] && !reduction.has_expression() &&
         TakesElements(reduction);
}

// A kernel may write whatever it is given.
bool WritesInPlace(const ProgramStep& step) {
  if (step.operation.has_kernel_launch()) return true;
  return std::find(step.existing.begin(), step.existing.end(), true) != step.existing.end();
}

// Which steps go into which.
class Fusion {
 public:
  Fusion(const std::map<uint64_t, ArrayInfo>& known, const FunctionTable* functions,
         std::vector<ProgramStep>& steps)
      : known_(known),
        functions_(functions),
        steps_(steps),
        reader_(steps.size()),
        weight_(steps.size(), 1) {}

  void Choose(const std::set<uint64_t>& results) {
    std::map<uint64_t, std::vector<size_t>> readers;
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (uint64_t handle : steps_[i].inputs) {
        if (handle != 0) readers[handle].push_back(i);
      }
      // An output written in place is read too, as far as it is kept.
      for (size_t j = 0; j < steps_[i].outputs.size(); ++j) {
        if (steps_[i].existing[j]) readers[steps_[i].outputs[j]].push_back(i);
      }
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!IsPlainLoop(steps_[i])) continue;
      const uint64_t handle = steps_[i].outputs[0];
      auto found = readers.find(handle);
      if (results.count(handle) > 0 || found == readers.end() || found->second.size() != 1)
        continue;
      const size_t reader = found->second[0];
      if (weight_[i] + weight_[reader] > kMaxFused) continue;
      const bool into_loop = IsPlainLoop(steps_[reader]) &&
                             known_.at(handle).shape == known_.at(steps_[reader].outputs[0]).shape;
      if (!into_loop && !ReadsElements(steps_[reader])) continue;
      // A later step might read what a step in between writes.
      if (std::any_of(steps_.begin() + static_cast<int64_t>(i),
                      steps_.begin() + static_cast<int64_t>(reader), WritesInPlace))
        continue;
      reader_[i] = reader;
      weight_[reader] += weight_[i];
      maker_[handle] = i;
    }
  }

  void Apply() {
    std::vector<bool> gone(steps_.size());
    for (size_t i = steps_.size(); i-- > 0;) {
      // A reader that stays apart takes nothing in, nor do those that went into it.
      if (reader_[i] || weight_[i] == 1) continue;
      ProgramStep fused = steps_[i];
      std::vector<size_t> members;
      if (!Plan(i, &fused, &members)) continue;
      steps_[i] = std::move(fused);
      for (size_t member : members) gone[member] = true;
    }
    std::vector<ProgramStep> left;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!gone[i]) left.push_back(std::move(steps_[i]));
    }
    steps_ = std::move(left);
  }

 private:
  struct Loop {
    ProgramBuilder builder;
    std::vector<uint64_t> handles;  // by slot
    std::vector<size_t> members;
  };

  uint32_t SlotOf(Loop& loop, uint64_t handle) const {
    auto found = std::find(loop.handles.begin(), loop.handles.end(), handle);
    const auto slot = static_cast<uint32_t>(found - loop.handles.begin());
    if (found == loop.handles.end()) loop.handles.push_back(handle);
    return slot;
  }

  absl::StatusOr<Argument> Operand(Loop& loop, const v1::Operand& operand) const {
    if (operand.source_case() != v1::Operand::kHandle)
      return ToArgument(loop.builder, operand, std::nullopt, 0, "operand");
    auto maker = maker_.find(operand.handle());
    if (maker == maker_.end()) {
      const ArrayInfo& array = known_.at(operand.handle());
      return ToArgument(loop.builder, operand, array, SlotOf(loop, operand.handle()), "operand");
    }
    loop.members.push_back(maker->second);
    auto value = Result(loop, steps_[maker->second]);
    if (!value.ok()) return value.status();
    return Argument(*value);
  }

  absl::StatusOr<Value> Elements(Loop& loop, const v1::Reduction& reduction) const {
    auto elements = Operand(loop, reduction.input());
    if (!elements.ok()) return elements.status();
    return ToValue(loop.builder, *elements, "operand");
  }

  absl::StatusOr<Value> Result(Loop& loop, const ProgramStep& step) const {
    const v1::Operation& operation = step.operation;
    return operation.has_ufunc() ? OfUfunc(loop, operation.ufunc())
                                 : OfExpression(loop, operation.expression());
  }

  absl::StatusOr<Value> OfUfunc(Loop& loop, const v1::Ufunc& ufunc) const {
    std::vector<Argument> arguments;
    for (const v1::Operand& operand : ufunc.inputs()) {
      auto argument = Operand(loop, operand);
      if (!argument.ok()) return argument.status();
      arguments.push_back(*argument);
    }
    auto data_type = ReadDataType(ufunc.data_type(), "data_type");
    auto casting = ReadCasting(ufunc.casting(), "casting");
    if (!data_type.ok() || !casting.ok()) return absl::InternalError("planned already");
    if (const OpRow* row = FindOp(ufunc.function()))
      return ops::Apply(loop.builder, *row, arguments, *data_type, "operand", *casting);
    const ClientFunction* own =
        functions_ == nullptr ? nullptr : functions_->Find(ufunc.function());
    if (own == nullptr) return absl::InternalError("planned already");
    return ApplyFunction(loop.builder, *own, arguments, *data_type, "operand", *casting);
  }

  absl::StatusOr<Value> OfExpression(Loop& loop, const v1::Expression& expression) const {
    auto tree = ParseExpression(expression.text());
    if (!tree.ok()) return tree.status();
    // Each name once, however often it stands there.
    std::map<std::string, Argument> known;
    auto resolve = [&](const std::string& name) -> absl::StatusOr<std::optional<Argument>> {
      auto input = expression.inputs().find(name);
      if (input == expression.inputs().end()) return std::nullopt;
      auto found = known.find(name);
      if (found != known.end()) return found->second;
      auto argument = Operand(loop, input->second);
      if (!argument.ok()) return argument.status();
      known.emplace(name, *argument);
      return *argument;
    };
    auto made = LowerExpression(loop.builder, *tree, resolve, {}, functions_, "operand");
    if (!made.ok()) return made.status();
    return ToValue(loop.builder, *made, "operand");
  }

  // False: the step stays as it is, and so do those that would have gone into it.
  bool Plan(size_t step, ProgramStep* fused, std::vector<size_t>* members) const {
    Loop loop;
    const v1::Operation& operation = steps_[step].operation;
    auto value = operation.has_reduction() ? Elements(loop, operation.reduction())
                                           : Result(loop, steps_[step]);
    if (!value.ok() || loop.handles.size() > kMaxOperands) return false;
    std::vector<Input> inputs;
    for (uint64_t handle : loop.handles) inputs.emplace_back(known_.at(handle));
    const ArrayInfo& output = known_.at(fused->outputs[0]);
    auto plan = operation.has_reduction()
                    ? PlanReductionOf(operation.reduction(),
                                      {std::move(loop.builder), *value,
                                       known_.at(operation.reduction().input().handle()).shape},
                                      inputs, std::nullopt)
                    : PlanLoop(loop.builder, *value, inputs, output, "operation");
    if (!plan.ok()) return false;
    fused->plan = *std::move(plan);
    fused->inputs = std::move(loop.handles);
    *members = std::move(loop.members);
    return true;
  }

  const std::map<uint64_t, ArrayInfo>& known_;
  const FunctionTable* const functions_;
  std::vector<ProgramStep>& steps_;
  std::vector<std::optional<size_t>> reader_;  // into which step each goes
  std::vector<int> weight_;                    // operations in each, those that went into it too
  std::map<uint64_t, size_t> maker_;           // by handle, for results of loops
};

}  // namespace

void FuseSteps(const std::map<uint64_t, ArrayInfo>& known, const std::set<uint64_t>& results,
               const FunctionTable* functions, std::vector<ProgramStep>* steps) {
  Fusion fusion(known, functions, *steps);
  fusion.Choose(results);
  fusion.Apply();
}

}  // namespace stride::ops
