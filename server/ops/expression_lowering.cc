#include "server/ops/expression_lowering.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/fold.h"

namespace stride::ops {
namespace {

std::optional<WeakScalar> ConstantNamed(const std::string& name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// Lowers a tree node by node; later nodes use each node's argument.
class Lowering {
 public:
  Lowering(ProgramBuilder& builder, const ResolveName& resolve,
           const std::vector<std::string>& names, const FunctionTable* functions,
           std::string_view field)
      : builder_(builder), resolve_(resolve), names_(names), functions_(functions), field_(field) {}

  absl::StatusOr<Argument> Lower(const ExpressionTree& tree) {
    for (const ExpressionNode& node : tree) {
      auto argument = LowerNode(node);
      if (!argument.ok()) return argument.status();
      arguments_.push_back(*argument);
    }
    return arguments_.back();
  }

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
    auto own = resolve_(node.name);
    if (!own.ok()) return own.status();
    if (*own) return **own;
    if (auto constant = ConstantNamed(node.name)) return Argument(*constant);
    if (node.name == "True" || node.name == "False") {
      return Argument(
          builder_.Constant(*EncodeScalar(Integer{node.name == "True"}, DType::kBool, field_)));
    }
    if (FindOp(node.name) != nullptr) {
      return At(node, v1::ERROR_REASON_EXPRESSION_SYNTAX,
                "a function must be called; write its arguments in parentheses: ");
    }
    std::vector<std::string> names = {"pi", "inf", "nan", "True", "False"};
    names.insert(names.end(), names_.begin(), names_.end());
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
    if (const ClientFunction* function =
            functions_ == nullptr ? nullptr : functions_->Find(node.name)) {
      auto value = ApplyFunction(builder_, *function, ArgumentsOf(node), std::nullopt, field_);
      if (value.ok()) return Argument(*value);
      return WithText(value.status(),
                      absl::StrCat(value.status().message(), "; at byte ", node.position));
    }
    return Unknown(node, v1::ERROR_REASON_UNKNOWN_FUNCTION, "no such function", {});
  }

  absl::StatusOr<Argument> ApplyAt(const ExpressionNode& node, const OpRow& row,
                                   const std::vector<Argument>& arguments) {
    auto value = Apply(builder_, row, arguments, std::nullopt, field_);
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
    return InvalidField(reason, field_, absl::StrCat(text, node.name, " at byte ", node.position),
                        std::move(metadata));
  }

  absl::Status Unknown(const ExpressionNode& node, v1::ErrorReason reason, const char* text,
                       const std::vector<std::string>& names) const {
    std::string suggestion = SuggestOp(node.name, names);
    if (suggestion.empty()) return At(node, reason, absl::StrCat(text, ": ").c_str());
    return At(node, reason, absl::StrCat(text, "; did you mean ", suggestion, "?: ").c_str(),
              {{"suggestion", suggestion}});
  }

  ProgramBuilder& builder_;
  const ResolveName& resolve_;
  const std::vector<std::string>& names_;
  const FunctionTable* const functions_;
  const std::string_view field_;
  std::vector<Argument> arguments_;
};

}  // namespace

absl::StatusOr<Argument> LowerExpression(ProgramBuilder& builder, const ExpressionTree& tree,
                                         const ResolveName& resolve,
                                         const std::vector<std::string>& names,
                                         const FunctionTable* functions, std::string_view field) {
  return Lowering(builder, resolve, names, functions, field).Lower(tree);
}

}  // namespace stride::ops
