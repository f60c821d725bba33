#include <map>

#include "absl/strings/str_cat.h"
#include "server/ops/plan.h"

namespace stride::ops {
namespace {

template <typename Message>
void AddIndices(const Message& message, const char* name, std::vector<OperandField>* operands) {
  for (int i = 0; i < message.indices_size(); ++i)
    operands->push_back({&message.indices(i), absl::StrCat(name, ".indices[", i, "]")});
}

void AddMembers(const v1::KernelArgument::Aggregate& aggregate, const std::string& field,
                std::vector<OperandField>* operands) {
  for (int m = 0; m < aggregate.members_size(); ++m) {
    if (!aggregate.members(m).has_array()) continue;
    operands->push_back(
        {&aggregate.members(m).array(), absl::StrCat(field, ".aggregate.members[", m, "].array")});
  }
}

void AddLaunch(const v1::KernelLaunch& launch, std::vector<OperandField>* operands) {
  for (int i = 0; i < launch.arguments_size(); ++i) {
    const v1::KernelArgument& argument = launch.arguments(i);
    const std::string field = absl::StrCat("kernel_launch.arguments[", i, "]");
    if (argument.has_array()) operands->push_back({&argument.array(), field + ".array"});
    if (argument.has_aggregate()) AddMembers(argument.aggregate(), field, operands);
  }
  for (int i = 0; i < launch.globals_size(); ++i) {
    if (!launch.globals(i).has_array()) continue;
    operands->push_back(
        {&launch.globals(i).array(), absl::StrCat("kernel_launch.globals[", i, "].array")});
  }
}

}  // namespace

std::vector<OperandField> CollectOperands(const v1::Operation& operation) {
  std::vector<OperandField> operands;
  switch (operation.kind_case()) {
    case v1::Operation::kUfunc:
      operands.reserve(operation.ufunc().inputs_size() + 1);
      for (int i = 0; i < operation.ufunc().inputs_size(); ++i) {
        operands.push_back({&operation.ufunc().inputs(i), absl::StrCat("ufunc.inputs[", i, "]")});
      }
      if (operation.ufunc().has_where())
        operands.push_back({&operation.ufunc().where(), "ufunc.where"});
      break;
    case v1::Operation::kExpression: {
      std::map<std::string, const v1::Operand*> sorted;
      for (const auto& [name, operand] : operation.expression().inputs()) sorted[name] = &operand;
      for (const auto& [name, operand] : sorted) {
        operands.push_back({operand, absl::StrCat("expression.inputs[", name, "]")});
      }
      break;
    }
    case v1::Operation::kReduction:
      operands.push_back({&operation.reduction().input(), "reduction.input"});
      for (int i = 0; i < operation.reduction().more_inputs_size(); ++i) {
        operands.push_back({&operation.reduction().more_inputs(i),
                            absl::StrCat("reduction.more_inputs[", i, "]")});
      }
      if (operation.reduction().has_where())
        operands.push_back({&operation.reduction().where(), "reduction.where"});
      break;
    case v1::Operation::kMatmul:
      operands.push_back({&operation.matmul().left(), "matmul.left"});
      operands.push_back({&operation.matmul().right(), "matmul.right"});
      break;
    case v1::Operation::kKernelLaunch:
      AddLaunch(operation.kernel_launch(), &operands);
      break;
    case v1::Operation::kCopy:
      operands.push_back({&operation.copy().input(), "copy.input"});
      break;
    case v1::Operation::kView:
      operands.push_back({&operation.view().input(), "view.input"});
      break;
    case v1::Operation::kAccumulation:
      operands.push_back({&operation.accumulation().input(), "accumulation.input"});
      break;
    case v1::Operation::kGather:
      operands.push_back({&operation.gather().input(), "gather.input"});
      AddIndices(operation.gather(), "gather", &operands);
      break;
    case v1::Operation::kScatter:
      operands.push_back({&operation.scatter().values(), "scatter.values"});
      AddIndices(operation.scatter(), "scatter", &operands);
      break;
    case v1::Operation::kCompress:
      operands.push_back({&operation.compress().input(), "compress.input"});
      operands.push_back({&operation.compress().mask(), "compress.mask"});
      break;
    case v1::Operation::kNonzero:
      operands.push_back({&operation.nonzero().input(), "nonzero.input"});
      break;
    case v1::Operation::kSort:
      operands.push_back({&operation.sort().input(), "sort.input"});
      break;
    case v1::Operation::kTopK:
      operands.push_back({&operation.top_k().input(), "top_k.input"});
      break;
    case v1::Operation::kHistogram: {
      const v1::Histogram& histogram = operation.histogram();
      operands.push_back({&histogram.input(), "histogram.input"});
      if (histogram.has_edges()) operands.push_back({&histogram.edges(), "histogram.edges"});
      if (histogram.has_weights()) operands.push_back({&histogram.weights(), "histogram.weights"});
      break;
    }
    case v1::Operation::kGroupReduce:
      operands.push_back({&operation.group_reduce().values(), "group_reduce.values"});
      operands.push_back({&operation.group_reduce().groups(), "group_reduce.groups"});
      break;
    case v1::Operation::kSearch:
      operands.push_back({&operation.search().sorted(), "search.sorted"});
      operands.push_back({&operation.search().values(), "search.values"});
      break;
    case v1::Operation::kLinalg:
      for (int i = 0; i < operation.linalg().operands_size(); ++i) {
        operands.push_back(
            {&operation.linalg().operands(i), absl::StrCat("linalg.operands[", i, "]")});
      }
      break;
    case v1::Operation::kFft:
      operands.push_back({&operation.fft().input(), "fft.input"});
      break;
    case v1::Operation::kReduceAt:
      operands.push_back({&operation.reduce_at().input(), "reduce_at.input"});
      operands.push_back({&operation.reduce_at().indices(), "reduce_at.indices"});
      break;
    case v1::Operation::kOuter:
      operands.push_back({&operation.outer().left(), "outer.left"});
      operands.push_back({&operation.outer().right(), "outer.right"});
      break;
    case v1::Operation::kApplyAt:
      // A function of one input has none.
      if (operation.apply_at().has_values())
        operands.push_back({&operation.apply_at().values(), "apply_at.values"});
      AddIndices(operation.apply_at(), "apply_at", &operands);
      break;
    case v1::Operation::kGufunc:
      for (int i = 0; i < operation.gufunc().inputs_size(); ++i)
        operands.push_back({&operation.gufunc().inputs(i), absl::StrCat("gufunc.inputs[", i, "]")});
      break;
    case v1::Operation::kProgramCall:
      for (int i = 0; i < operation.program_call().inputs_size(); ++i) {
        operands.push_back(
            {&operation.program_call().inputs(i), absl::StrCat("program_call.inputs[", i, "]")});
      }
      break;
    case v1::Operation::kCreation:
    case v1::Operation::KIND_NOT_SET:
      break;
  }
  return operands;
}

std::vector<OutputField> CollectOutputs(const v1::Operation& operation) {
  std::vector<OutputField> outputs;
  if (operation.kind_case() != v1::Operation::kKernelLaunch) {
    for (int i = 0; i < operation.outputs_size(); ++i) {
      outputs.push_back({&operation.outputs(i), absl::StrCat("outputs[", i, "]")});
    }
    return outputs;
  }
  for (int i = 0; i < operation.kernel_launch().arguments_size(); ++i) {
    const v1::KernelArgument& argument = operation.kernel_launch().arguments(i);
    const std::string field = absl::StrCat("kernel_launch.arguments[", i, "]");
    if (argument.has_new_array())
      outputs.push_back({&argument.new_array().output(), field + ".new_array.output"});
    for (int m = 0; m < argument.aggregate().members_size(); ++m) {
      const auto& member = argument.aggregate().members(m);
      if (!member.has_new_array()) continue;
      outputs.push_back({&member.new_array().output(),
                         absl::StrCat(field, ".aggregate.members[", m, "].new_array.output")});
    }
  }
  return outputs;
}

}  // namespace stride::ops
