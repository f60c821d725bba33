#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/expression_parser.h"
#include "server/ops/fold.h"
#include "server/ops/promotion.h"

namespace stride::ops {
namespace {

constexpr char kText[] = "expression.text";

struct NamedInput {
  const v1::Operand* operand;
  const Input* input;
  uint32_t slot;
};

std::optional<WeakScalar> ConstantNamed(const std::string& name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

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

// Lowers a tree node by node; every node becomes an argument of those after it.
class Lowering {
 public:
  Lowering(const v1::Expression& expression, Inputs inputs)
      : inputs_(NameInputs(expression, inputs)) {}

  absl::StatusOr<Value> Lower(const ExpressionTree& tree) {
    for (const ExpressionNode& node : tree) {
      auto argument = LowerNode(node);
      if (!argument.ok()) return argument.status();
      arguments_.push_back(*argument);
    }
    return ToValue(builder_, arguments_.back(), kText);
  }

  ProgramBuilder& builder() { return builder_; }
  const std::vector<Shape>& shapes() const { return shapes_; }

 private:
  absl::StatusOr<Argument> LowerNode(const ExpressionNode& node) {
    switch (node.kind) {
      case ExpressionNode::Kind::kNumber:
        return Argument(node.number);
      case ExpressionNode::Kind::kName:
        return LowerName(node);
      case ExpressionNode::Kind::kOperator:
        return LowerOperator(node);
      case ExpressionNode::Kind::kCall:
        return LowerCall(node);
    }
    return absl::InternalError("unknown expression node");
  }

  absl::StatusOr<Argument> LowerName(const ExpressionNode& node) {
    auto found = inputs_.find(node.name);
    if (found != inputs_.end()) {
      const NamedInput& named = found->second;
      if (*named.input) shapes_.push_back((*named.input)->shape);
      return ToArgument(builder_, *named.operand, *named.input, named.slot,
                        absl::StrCat("expression.inputs[", node.name, "]"));
    }
    if (auto constant = ConstantNamed(node.name)) return Argument(*constant);
    if (node.name == "True" || node.name == "False") {
      return Argument(
          builder_.Constant(*EncodeScalar(Integer{node.name == "True"}, DType::kBool, kText)));
    }
    if (FindOp(node.name) != nullptr) {
      return At(node, v1::ERROR_REASON_EXPRESSION_SYNTAX,
                "a function must be called; write its arguments in parentheses: ");
    }
    std::vector<std::string> names = {"pi", "inf", "nan", "True", "False"};
    for (const auto& [name, input] : inputs_) names.push_back(name);
    return Unknown(node, v1::ERROR_REASON_EXPRESSION_SYNTAX, "no input has this name", names);
  }

  absl::StatusOr<Argument> LowerOperator(const ExpressionNode& node) {
    std::vector<Argument> arguments = ArgumentsOf(node);
    std::vector<WeakScalar> weak;
    for (const Argument& argument : arguments) {
      if (const auto* scalar = std::get_if<WeakScalar>(&argument)) weak.push_back(*scalar);
    }
    if (weak.size() == arguments.size()) {
      if (auto folded = Fold(node.name, weak)) return Argument(*folded);
    }
    return ApplyAt(node, *FindOp(node.name), arguments);
  }

  absl::StatusOr<Argument> LowerCall(const ExpressionNode& node) {
    const OpRow* row = FindOp(node.name);
    if (row != nullptr) return ApplyAt(node, *row, ArgumentsOf(node));
    if (FindTwoOutputUfunc(node.name) != nullptr) {
      return NotImplemented(
          absl::StrCat("ufunc.", node.name),
          absl::StrCat("functions with two results cannot stand in an expression: ", node.name));
    }
    return Unknown(node, v1::ERROR_REASON_UNKNOWN_FUNCTION, "no such function", {});
  }

  absl::StatusOr<Argument> ApplyAt(const ExpressionNode& node, const OpRow& row,
                                   const std::vector<Argument>& arguments) {
    auto value = Apply(builder_, row, arguments, std::nullopt, kText);
    if (value.ok()) return Argument(*value);
    return WithText(value.status(),
                    absl::StrCat(value.status().message(), "; at byte ", node.position));
  }

  std::vector<Argument> ArgumentsOf(const ExpressionNode& node) const {
    std::vector<Argument> arguments;
    for (int index : node.arguments) arguments.push_back(arguments_[index]);
    return arguments;
  }

  absl::Status At(const ExpressionNode& node, v1::ErrorReason reason, const char* text,
                  ErrorMetadata metadata = {}) const {
    metadata.emplace_back("position", absl::StrCat(node.position));
    metadata.emplace_back("name", node.name);
    return InvalidField(reason, kText, absl::StrCat(text, node.name, " at byte ", node.position),
                        std::move(metadata));
  }

  absl::Status Unknown(const ExpressionNode& node, v1::ErrorReason reason, const char* text,
                       const std::vector<std::string>& names) const {
    std::string suggestion = SuggestOp(node.name, names);
    if (suggestion.empty()) return At(node, reason, absl::StrCat(text, ": ").c_str());
    return At(node, reason, absl::StrCat(text, "; did you mean ", suggestion, "?: ").c_str(),
              {{"suggestion", suggestion}});
  }

  std::map<std::string, NamedInput> inputs_;
  ProgramBuilder builder_;
  std::vector<Argument> arguments_;
  std::vector<Shape> shapes_;
};

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
                                    const Input& existing) {
  auto tree = ParseExpression(expression.text());
  if (!tree.ok()) return tree.status();
  Lowering lowering(expression, inputs);
  auto lowered = lowering.Lower(*tree);
  if (!lowered.ok()) return lowered.status();
  auto value = CastResult(lowering.builder(), *lowered, expression.data_type());
  if (!value.ok()) return value.status();
  auto shape = BroadcastShapes(lowering.shapes(), "expression.inputs");
  if (!shape.ok()) return shape.status();
  auto output = ChooseOutput(value->dtype, *shape, existing);
  if (!output.ok()) return output.status();
  return PlanLoop(lowering.builder(), *value, inputs, *output, kText,
                  expression.text().substr(0, 200));
}

}  // namespace stride::ops
