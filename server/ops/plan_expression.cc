#include <map>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/expression_lowering.h"
#include "server/ops/expression_parser.h"
#include "server/ops/promotion.h"

namespace stride::ops {
namespace {

constexpr char kText[] = "expression.text";

struct NamedInput {
  const v1::Operand* operand;
  const Input* input;
  uint32_t slot;
};

// Names of every input, with its slot: the sorted order of CollectOperands.
std::map<std::string, NamedInput> NameInputs(const v1::Expression& expression, Inputs inputs) {
  std::map<std::string, NamedInput> named;
  for (const auto& [name, operand] : expression.inputs()) named[name] = {&operand, nullptr, 0};
  uint32_t slot = 0;
  for (auto& [name, entry] : named) {
    entry.slot = slot;
    entry.input = &inputs[slot++];
  }
  return named;
}

absl::StatusOr<Value> CastResult(ProgramBuilder& builder, Value value, int number) {
  auto data_type = ReadDataType(number, "expression.data_type");
  if (!data_type.ok()) return data_type.status();
  if (!*data_type || **data_type == value.dtype) return value;
  if (!CanCastSameKind(value.dtype, **data_type)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "expression.data_type",
        absl::StrCat("the result cannot be cast to the type asked for without changing its kind: ",
                     std::string(Name(value.dtype)), " to ", std::string(Name(**data_type))));
  }
  return builder.Cast(value, **data_type);
}

}  // namespace

absl::StatusOr<Plan> PlanExpression(const v1::Expression& expression, Inputs inputs,
                                    const Input& existing, const FunctionTable* functions) {
  auto tree = ParseExpression(expression.text());
  if (!tree.ok()) return tree.status();
  ProgramBuilder builder;
  std::vector<Shape> shapes;
  const std::map<std::string, NamedInput> named = NameInputs(expression, inputs);
  auto resolve = [&](const std::string& name) -> absl::StatusOr<std::optional<Argument>> {
    auto found = named.find(name);
    if (found == named.end()) return std::nullopt;
    const NamedInput& input = found->second;
    if (*input.input) shapes.push_back((*input.input)->shape);
    auto argument = ToArgument(builder, *input.operand, *input.input, input.slot,
                               absl::StrCat("expression.inputs[", name, "]"));
    if (!argument.ok()) return argument.status();
    return *argument;
  };
  std::vector<std::string> names;
  for (const auto& [name, input] : named) names.push_back(name);
  auto lowered = LowerExpression(builder, *tree, resolve, names, functions, kText);
  if (!lowered.ok()) return lowered.status();
  auto whole = ToValue(builder, *lowered, kText);
  if (!whole.ok()) return whole.status();
  auto value = CastResult(builder, *whole, expression.data_type());
  if (!value.ok()) return value.status();
  auto shape = BroadcastShapes(shapes, "expression.inputs");
  if (!shape.ok()) return shape.status();
  auto output = ChooseOutput(value->dtype, *shape, existing);
  if (!output.ok()) return output.status();
  return PlanLoop(builder, *value, inputs, *output, kText, expression.text().substr(0, 200));
}

}  // namespace stride::ops
