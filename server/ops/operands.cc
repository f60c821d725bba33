#include "server/ops/operands.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "server/ops/plan.h"

namespace stride::ops {
namespace {

// Each calls add(operand, field), where `field` is called for the path if anybody wants it.
template <typename Message, typename Add>
void AddIndices(const Message& message, const char* name, Add add) {
  for (int i = 0; i < message.indices_size(); ++i)
    add(&message.indices(i), [&] { return absl::StrCat(name, ".indices[", i, "]"); });
}

template <typename Add>
void AddMembers(const v1::KernelArgument::Aggregate& aggregate, const std::string& field, Add add) {
  for (int m = 0; m < aggregate.members_size(); ++m) {
    if (!aggregate.members(m).has_array()) continue;
    add(&aggregate.members(m).array(),
        [&] { return absl::StrCat(field, ".aggregate.members[", m, "].array"); });
  }
}

template <typename Add>
void AddLaunch(const v1::KernelLaunch& launch, Add add) {
  for (int i = 0; i < launch.arguments_size(); ++i) {
    const v1::KernelArgument& argument = launch.arguments(i);
    const std::string field = absl::StrCat("kernel_launch.arguments[", i, "]");
    if (argument.has_array()) add(&argument.array(), [&] { return field + ".array"; });
    if (argument.has_aggregate()) AddMembers(argument.aggregate(), field, add);
    if (argument.has_texture())
      add(&argument.texture().array(), [&] { return field + ".texture.array"; });
  }
  for (int i = 0; i < launch.globals_size(); ++i) {
    if (!launch.globals(i).has_array()) continue;
    add(&launch.globals(i).array(),
        [&] { return absl::StrCat("kernel_launch.globals[", i, "].array"); });
  }
}

template <typename List, typename Add>
void AddEach(const List& operands, const char* name, Add add) {
  for (int i = 0; i < operands.size(); ++i)
    add(&operands.Get(i), [&] { return absl::StrCat(name, "[", i, "]"); });
}

// Its own, not those of its body.
template <typename Add>
void AddLoop(const v1::Loop& loop, Add add) {
  AddEach(loop.constants(), "loop.constants", add);
  AddEach(loop.carried(), "loop.carried", add);
  AddEach(loop.scanned(), "loop.scanned", add);
  if (loop.has_condition()) add(&loop.condition(), [&] { return std::string("loop.condition"); });
}

// Sorted by name.
template <typename Add>
void AddExpression(const v1::Expression& expression, const char* field, Add add) {
  std::map<std::string, const v1::Operand*> sorted;
  for (const auto& [name, operand] : expression.inputs()) sorted[name] = &operand;
  for (const auto& [name, operand] : sorted)
    add(operand, [&] { return absl::StrCat(field, ".inputs[", name, "]"); });
}

template <typename Add>
void ForEachOperand(const v1::Operation& operation, Add add) {
  switch (operation.kind_case()) {
    case v1::Operation::kUfunc:
      for (int i = 0; i < operation.ufunc().inputs_size(); ++i) {
        add(&operation.ufunc().inputs(i), [&] { return absl::StrCat("ufunc.inputs[", i, "]"); });
      }
      if (operation.ufunc().has_where())
        add(&operation.ufunc().where(), [&] { return std::string("ufunc.where"); });
      break;
    case v1::Operation::kExpression:
      AddExpression(operation.expression(), "expression", add);
      break;
    case v1::Operation::kReduction:
      if (operation.reduction().has_expression()) {
        AddExpression(operation.reduction().expression(), "reduction.expression", add);
      } else {
        add(&operation.reduction().input(), [&] { return std::string("reduction.input"); });
      }
      for (int i = 0; i < operation.reduction().more_inputs_size(); ++i) {
        add(&operation.reduction().more_inputs(i),
            [&] { return absl::StrCat("reduction.more_inputs[", i, "]"); });
      }
      if (operation.reduction().has_where())
        add(&operation.reduction().where(), [&] { return std::string("reduction.where"); });
      break;
    case v1::Operation::kMatmul:
      add(&operation.matmul().left(), [&] { return std::string("matmul.left"); });
      add(&operation.matmul().right(), [&] { return std::string("matmul.right"); });
      break;
    case v1::Operation::kKernelLaunch:
      AddLaunch(operation.kernel_launch(), add);
      break;
    case v1::Operation::kCopy:
      add(&operation.copy().input(), [&] { return std::string("copy.input"); });
      break;
    case v1::Operation::kView:
      add(&operation.view().input(), [&] { return std::string("view.input"); });
      break;
    case v1::Operation::kAccumulation:
      add(&operation.accumulation().input(), [&] { return std::string("accumulation.input"); });
      break;
    case v1::Operation::kGather:
      add(&operation.gather().input(), [&] { return std::string("gather.input"); });
      AddIndices(operation.gather(), "gather", add);
      break;
    case v1::Operation::kScatter:
      add(&operation.scatter().values(), [&] { return std::string("scatter.values"); });
      AddIndices(operation.scatter(), "scatter", add);
      break;
    case v1::Operation::kCompress:
      add(&operation.compress().input(), [&] { return std::string("compress.input"); });
      add(&operation.compress().mask(), [&] { return std::string("compress.mask"); });
      break;
    case v1::Operation::kNonzero:
      add(&operation.nonzero().input(), [&] { return std::string("nonzero.input"); });
      break;
    case v1::Operation::kSort:
      add(&operation.sort().input(), [&] { return std::string("sort.input"); });
      for (int i = 0; i < operation.sort().more_keys_size(); ++i) {
        add(&operation.sort().more_keys(i),
            [&] { return absl::StrCat("sort.more_keys[", i, "]"); });
      }
      break;
    case v1::Operation::kTopK:
      add(&operation.top_k().input(), [&] { return std::string("top_k.input"); });
      break;
    case v1::Operation::kSelect:
      add(&operation.select().input(), [&] { return std::string("select.input"); });
      add(&operation.select().ranks(), [&] { return std::string("select.ranks"); });
      break;
    case v1::Operation::kPartition:
      add(&operation.partition().input(), [&] { return std::string("partition.input"); });
      break;
    case v1::Operation::kInterpolate:
      add(&operation.interpolate().input(), [&] { return std::string("interpolate.input"); });
      add(&operation.interpolate().known(), [&] { return std::string("interpolate.known"); });
      add(&operation.interpolate().values(), [&] { return std::string("interpolate.values"); });
      break;
    case v1::Operation::kCorrelate:
      add(&operation.correlate().left(), [&] { return std::string("correlate.left"); });
      add(&operation.correlate().right(), [&] { return std::string("correlate.right"); });
      break;
    case v1::Operation::kHistogram: {
      const v1::Histogram& histogram = operation.histogram();
      add(&histogram.input(), [&] { return std::string("histogram.input"); });
      if (histogram.has_edges())
        add(&histogram.edges(), [&] { return std::string("histogram.edges"); });
      if (histogram.has_weights())
        add(&histogram.weights(), [&] { return std::string("histogram.weights"); });
      break;
    }
    case v1::Operation::kGroupReduce:
      add(&operation.group_reduce().values(), [&] { return std::string("group_reduce.values"); });
      add(&operation.group_reduce().groups(), [&] { return std::string("group_reduce.groups"); });
      break;
    case v1::Operation::kSearch:
      add(&operation.search().sorted(), [&] { return std::string("search.sorted"); });
      add(&operation.search().values(), [&] { return std::string("search.values"); });
      break;
    case v1::Operation::kLinalg:
      for (int i = 0; i < operation.linalg().operands_size(); ++i) {
        add(&operation.linalg().operands(i),
            [&] { return absl::StrCat("linalg.operands[", i, "]"); });
      }
      break;
    case v1::Operation::kFft:
      add(&operation.fft().input(), [&] { return std::string("fft.input"); });
      break;
    case v1::Operation::kReduceAt:
      add(&operation.reduce_at().input(), [&] { return std::string("reduce_at.input"); });
      add(&operation.reduce_at().indices(), [&] { return std::string("reduce_at.indices"); });
      break;
    case v1::Operation::kOuter:
      add(&operation.outer().left(), [&] { return std::string("outer.left"); });
      add(&operation.outer().right(), [&] { return std::string("outer.right"); });
      break;
    case v1::Operation::kApplyAt:
      // A function of one input has none.
      if (operation.apply_at().has_values())
        add(&operation.apply_at().values(), [&] { return std::string("apply_at.values"); });
      AddIndices(operation.apply_at(), "apply_at", add);
      break;
    case v1::Operation::kGufunc:
      for (int i = 0; i < operation.gufunc().inputs_size(); ++i)
        add(&operation.gufunc().inputs(i), [&] { return absl::StrCat("gufunc.inputs[", i, "]"); });
      break;
    case v1::Operation::kProgramCall:
      for (int i = 0; i < operation.program_call().inputs_size(); ++i) {
        add(&operation.program_call().inputs(i),
            [&] { return absl::StrCat("program_call.inputs[", i, "]"); });
      }
      break;
    case v1::Operation::kLoop:
      AddLoop(operation.loop(), add);
      break;
    case v1::Operation::kBranch:
      add(&operation.branch().index(), [&] { return std::string("branch.index"); });
      AddEach(operation.branch().inputs(), "branch.inputs", add);
      break;
    case v1::Operation::kCreation:
    case v1::Operation::KIND_NOT_SET:
      break;
  }
}

// Likewise of outputs.
template <typename Add>
void ForEachOutput(const v1::Operation& operation, Add add) {
  if (operation.kind_case() != v1::Operation::kKernelLaunch) {
    for (int i = 0; i < operation.outputs_size(); ++i)
      add(&operation.outputs(i), [&] { return absl::StrCat("outputs[", i, "]"); });
    return;
  }
  for (int i = 0; i < operation.kernel_launch().arguments_size(); ++i) {
    const v1::KernelArgument& argument = operation.kernel_launch().arguments(i);
    const std::string field = absl::StrCat("kernel_launch.arguments[", i, "]");
    if (argument.has_new_array())
      add(&argument.new_array().output(), [&] { return field + ".new_array.output"; });
    for (int m = 0; m < argument.aggregate().members_size(); ++m) {
      const auto& member = argument.aggregate().members(m);
      if (!member.has_new_array()) continue;
      add(&member.new_array().output(),
          [&] { return absl::StrCat(field, ".aggregate.members[", m, "].new_array.output"); });
    }
  }
}

}  // namespace

std::vector<OperandField> CollectOperands(const v1::Operation& operation) {
  std::vector<OperandField> operands;
  ForEachOperand(operation, [&](const v1::Operand* operand, auto field) {
    operands.push_back({operand, field()});
  });
  return operands;
}

std::vector<OutputField> CollectOutputs(const v1::Operation& operation) {
  std::vector<OutputField> outputs;
  ForEachOutput(operation, [&](const v1::Output* output, auto field) {
    outputs.push_back({output, field()});
  });
  return outputs;
}

Operands OperandsOf(const v1::Operation& operation) {
  Operands operands;
  ForEachOperand(operation, [&](const v1::Operand* operand, auto) { operands.push_back(operand); });
  return operands;
}

Outputs OutputsOf(const v1::Operation& operation) {
  Outputs outputs;
  ForEachOutput(operation, [&](const v1::Output* output, auto) { outputs.push_back(output); });
  return outputs;
}

}  // namespace stride::ops
