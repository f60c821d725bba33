#include <map>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/expression_lowering.h"
#include "server/ops/expression_parser.h"
#include "server/ops/operation_kind.h"
#include "server/ops/promotion.h"
#include "server/ops/rename_fields.h"

namespace stride::ops {
namespace {

struct NamedInput {
  const v1::Operand* operand;
  const Input* input;
  uint32_t slot;
};

// Names of every input, with its slot: the sorted order of OperandsOf.
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

absl::StatusOr<Value> CastResult(ProgramBuilder& builder, Value value, int number,
                                 const std::string& field) {
  auto data_type = ReadDataType(number, field);
  if (!data_type.ok()) return data_type.status();
  if (!*data_type || **data_type == value.dtype) return value;
  if (!CanCastSameKind(value.dtype, **data_type)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
        absl::StrCat("the result cannot be cast to the type asked for without changing its kind: ",
                     std::string(Name(value.dtype)), " to ", std::string(Name(**data_type))));
  }
  return builder.Cast(value, **data_type);
}

}  // namespace

absl::StatusOr<ExpressionElements> ReadElements(const v1::Expression& expression, Inputs inputs,
                                                const FunctionTable* functions,
                                                std::string_view field) {
  const std::string text = absl::StrCat(std::string(field), ".text");
  auto tree = ParseExpression(expression.text());
  if (!tree.ok()) return RenameFields(tree.status(), {{"expression.text", text}});
  ExpressionElements elements;
  ProgramBuilder& builder = elements.program;
  std::vector<Shape> shapes;
  const std::map<std::string, NamedInput> named = NameInputs(expression, inputs);
  auto resolve = [&](const std::string& name) -> absl::StatusOr<std::optional<Argument>> {
    auto found = named.find(name);
    if (found == named.end()) return std::nullopt;
    const NamedInput& input = found->second;
    if (*input.input) shapes.push_back((*input.input)->shape);
    auto argument = ToArgument(builder, *input.operand, *input.input, input.slot,
                               absl::StrCat(std::string(field), ".inputs[", name, "]"));
    if (!argument.ok()) return argument.status();
    return *argument;
  };
  std::vector<std::string> names;
  for (const auto& [name, input] : named) names.push_back(name);
  auto lowered = LowerExpression(builder, *tree, resolve, names, functions, text);
  if (!lowered.ok()) return lowered.status();
  auto whole = ToValue(builder, *lowered, text);
  if (!whole.ok()) return whole.status();
  auto value = CastResult(builder, *whole, expression.data_type(),
                          absl::StrCat(std::string(field), ".data_type"));
  if (!value.ok()) return value.status();
  auto shape = BroadcastShapes(shapes, absl::StrCat(std::string(field), ".inputs"));
  if (!shape.ok()) return shape.status();
  elements.value = *value;
  elements.shape = *std::move(shape);
  return elements;
}

namespace {

absl::StatusOr<Plan> PlanExpression(const v1::Expression& expression, Inputs inputs,
                                    const Input& existing, const FunctionTable* functions) {
  auto elements = ReadElements(expression, inputs, functions, "expression");
  if (!elements.ok()) return elements.status();
  auto output = ChooseOutput(elements->value.dtype, elements->shape, existing);
  if (!output.ok()) return output.status();
  return PlanLoop(elements->program, elements->value, inputs, *output, "expression.text");
}

bool ExpressionKey(const OperationView& o, const TenantId&, KeyWriter& key) {
  AddExpressionKey(o->expression(), key);
  return true;
}

}  // namespace

namespace {

using NamedOperand = std::pair<std::string_view, const v1::Operand*>;

absl::InlinedVector<NamedOperand, 8> SortedInputs(const v1::Expression& expression) {
  absl::InlinedVector<NamedOperand, 8> sorted;
  for (const auto& [name, operand] : expression.inputs()) sorted.emplace_back(name, &operand);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

void AddExpressionInputs(const v1::Expression& expression, OperandList& list) {
  for (const auto& [name, operand] : SortedInputs(expression)) list.Add(*operand);
}

void AddExpressionKey(const v1::Expression& expression, KeyWriter& key) {
  key.AddText(expression.text());
  key.Add(expression.data_type());
  for (const auto& [name, operand] : SortedInputs(expression)) {
    key.AddText(name);
    key.AddOperand(*operand);
  }
}

const OperationKind kExpressionKind = {
    .name = "expression",
    .detail = [](const v1::Operation& o) -> std::string { return o.expression().text(); },
    .operands = [](const v1::Operation& o,
                   OperandList& list) { AddExpressionInputs(o.expression(), list); },
    .plan = PlanBy<&v1::Operation::expression, PlanExpression>,
    .rules = {OneResult, ExpressionKey, BatchElementwise, DivideElementwise},
    .lists = Bounded<&v1::Operation::expression, kMaxListedInputs, &v1::Expression::inputs_size>,
    .batches_numbers = true,
};

}  // namespace stride::ops
