#include "client/cli/build_operation.h"

#include <algorithm>
#include <charconv>

namespace stride::cli {
namespace {

Error Bad(std::string message) {
  return {.code = Code::kInvalidArgument, .message = std::move(message)};
}

bool IsName(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c == '_' || std::isalnum(static_cast<unsigned char>(c));
         });
}

}  // namespace

Result<DataType> ReadDataType(const CommandLine& line) {
  const auto text = line.Value("dtype");
  if (!text) return DataType::kUnspecified;
  const auto type = ParseDataType(*text);
  if (!type) return Bad("--dtype " + *text + " is not a type such as float32 or int64");
  return *type;
}

Result<Operand> ResolveText(const std::string& text, OperandSource& source) {
  auto argument = ParseArgument(text);
  if (!argument) return argument.error();
  if (argument->kind == Argument::Kind::kOut || argument->kind == Argument::Kind::kInOut) {
    return Bad("'" + text + "' is for kernels only");
  }
  return source.Resolve(*argument, /*c_order=*/false);
}

Result<std::vector<int64_t>> ReadNumbers(const CommandLine& line, const std::string& option) {
  std::vector<int64_t> numbers;
  for (const std::string& text : line.Values(option)) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      int64_t number = 0;
      const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, number);
      if (error != std::errc() || stop != text.data() + end)
        return Bad("--" + option + " " + text +
                   " is not a list of whole numbers such as 0 or 0,-1");
      numbers.push_back(number);
      at = end + 1;
    }
  }
  return numbers;
}

std::vector<OptionSpec> UfuncOptionSpecs() {
  return {{"dtype", 0, "TYPE", "compute in and return this type (default: NumPy's promotion)"}};
}

std::vector<OptionSpec> ReduceOptionSpecs() {
  return JoinOptions({UfuncOptionSpecs(),
                      {{"axis", 0, "N[,N]", "axes to reduce (default: all); may be repeated"},
                       {"keepdims", 0, "", "keep reduced axes with length one"},
                       {"ddof", 0, "N", "var, std: subtracted from the number of elements"}}});
}

Result<Operation> BuildUfunc(std::span<const std::string> arguments, const CommandLine& line,
                             OperandSource& source) {
  if (arguments.empty()) return Bad("The operation is missing");
  const std::string& text = arguments[0];
  const auto type = ReadDataType(line);
  if (!type) return type.error();
  const auto inputs = arguments.subspan(1);
  const bool named = std::any_of(inputs.begin(), inputs.end(),
                                 [](const auto& a) { return SplitNamedInput(a).has_value(); });
  if (IsName(text) && !named && !inputs.empty()) {
    std::vector<Operand> operands;
    for (const auto& input : inputs) {
      auto operand = ResolveText(input, source);
      if (!operand) return operand.error();
      operands.push_back(*operand);
    }
    return Operation::Ufunc(text, operands, *type);
  }
  std::map<std::string, Operand> operands;
  for (const auto& input : inputs) {
    const auto parts = SplitNamedInput(input);
    if (!parts)
      return Bad("'" + input + "' has no name: inputs of an expression are written x=" + input);
    if (operands.contains(parts->first)) return Bad("'" + parts->first + "' is given twice");
    auto operand = ResolveText(parts->second, source);
    if (!operand) return operand.error();
    operands.emplace(parts->first, *operand);
  }
  return Operation::Expression(text, operands, *type);
}

Result<Operation> BuildReduce(std::span<const std::string> arguments, const CommandLine& line,
                              OperandSource& source) {
  if (arguments.size() != 2) return Bad("A reduction takes its name and one array");
  const auto function = ParseReduction(arguments[0]);
  if (!function)
    return Bad(
        "No reduction '" + arguments[0] +
        "': there are sum, prod, min, max, mean, any, all, argmin, argmax, norm, count_nonzero, "
        "var and std");
  const auto type = ReadDataType(line);
  if (!type) return type.error();
  ReduceOptions options{.keep_dims = line.Has("keepdims"), .data_type = *type};
  const auto axes = ReadNumbers(line, "axis");
  if (!axes) return axes.error();
  options.axes.assign(axes->begin(), axes->end());
  const auto ddof = ReadNumbers(line, "ddof");
  if (!ddof) return ddof.error();
  if (!ddof->empty()) options.correction = static_cast<double>(ddof->back());
  auto operand = ResolveText(arguments[1], source);
  if (!operand) return operand.error();
  return Operation::Reduce(*function, *operand, options);
}

Result<Operation> BuildMatmul(std::span<const std::string> arguments, const CommandLine&,
                              OperandSource& source) {
  if (arguments.size() != 2) return Bad("matmul takes two arrays");
  auto left = ResolveText(arguments[0], source);
  if (!left) return left.error();
  auto right = ResolveText(arguments[1], source);
  if (!right) return right.error();
  return Operation::Matmul(*left, *right);
}

OperationBuilder FindBuilder(std::string_view name) {
  static const std::map<std::string_view, OperationBuilder> kBuilders = {
      {"ufunc", BuildUfunc}, {"reduce", BuildReduce}, {"matmul", BuildMatmul}};
  const auto it = kBuilders.find(name);
  if (it != kBuilders.end()) return it->second;
  for (const ArrayOperation& operation : ArrayOperations()) {
    if (operation.name == name) return operation.build;
  }
  return nullptr;
}

std::vector<OptionSpec> BuilderOptionSpecs() {
  std::vector<OptionSpec> all = ReduceOptionSpecs();
  for (const ArrayOperation& operation : ArrayOperations()) {
    for (const OptionSpec& option : operation.options) {
      const bool known = std::any_of(all.begin(), all.end(), [&](const OptionSpec& other) {
        return other.name == option.name;
      });
      if (!known) all.push_back(option);
    }
  }
  return all;
}

}  // namespace stride::cli
