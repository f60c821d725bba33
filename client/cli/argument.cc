#include "client/cli/argument.h"

#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "client/cli/suggest.h"

namespace stride::cli {
namespace {

using Number = std::variant<bool, int64_t, uint64_t, double>;

Error Bad(std::string message) {
  return {.code = Code::kInvalidArgument, .message = std::move(message)};
}

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Number> ParseNumber(std::string_view text) {
  if (text == "true" || text == "True") return Number(true);
  if (text == "false" || text == "False") return Number(false);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  if (auto value = ParseWhole<int64_t>(text)) return Number(*value);
  if (auto value = ParseWhole<uint64_t>(text)) return Number(*value);
  if (auto value = ParseWhole<double>(text)) return Number(*value);
  return std::nullopt;
}

Result<DataType> ParseType(std::string_view name) {
  if (auto type = ParseDataType(name)) return *type;
  std::vector<std::string> names;
  for (int i = 1; i <= static_cast<int>(DataType::kComplex128); ++i)
    names.emplace_back(Name(static_cast<DataType>(i)));
  const std::string near = Suggest(name, names);
  return Bad("Unknown type '" + std::string(name) + "'" +
             (near.empty() ? "" : ". Did you mean " + near + "?"));
}

struct IntegerRange {
  int64_t least;
  uint64_t most;
};

std::optional<IntegerRange> RangeOf(DataType type) {
  const int bits = static_cast<int>(ItemSize(type)) * 8;
  if (type >= DataType::kInt8 && type <= DataType::kInt64) {
    const uint64_t most = (uint64_t{1} << (bits - 1)) - 1;
    return IntegerRange{-static_cast<int64_t>(most) - 1, most};
  }
  if (type >= DataType::kUint8 && type <= DataType::kUint64) {
    return IntegerRange{0, std::numeric_limits<uint64_t>::max() >> (64 - bits)};
  }
  return std::nullopt;
}

Result<void> CheckHolds(const Number& number, DataType type, std::string_view text) {
  const auto range = RangeOf(type);
  if (!range) return {};
  const auto* signed_value = std::get_if<int64_t>(&number);
  const auto* unsigned_value = std::get_if<uint64_t>(&number);
  bool holds = std::holds_alternative<bool>(number);
  if (signed_value)
    holds = *signed_value >= range->least &&
            (*signed_value < 0 || static_cast<uint64_t>(*signed_value) <= range->most);
  if (unsigned_value) holds = *unsigned_value <= range->most;
  if (!holds) return Bad(std::string(Name(type)) + " cannot hold " + std::string(text));
  return {};
}

Result<Argument> ParseTypedNumber(std::string_view number, std::string_view type_name) {
  auto type = ParseType(type_name);
  if (!type) return type.error();
  const auto value = ParseNumber(number);
  if (!value) return Bad("'" + std::string(number) + "' is not a number");
  if (auto holds = CheckHolds(*value, *type, number); !holds) return holds.error();
  return Argument{.kind = Argument::Kind::kNumber, .number = *value, .data_type = *type};
}

}  // namespace

Operand Argument::NumberOperand() const {
  const Operand operand = std::visit([](auto value) { return Operand(value); }, number);
  return data_type == DataType::kUnspecified ? operand : operand.As(data_type);
}

Result<std::vector<int64_t>> ParseExtents(std::string_view text) {
  std::vector<int64_t> extents;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(",x", at), text.size());
    const auto extent = ParseWhole<int64_t>(text.substr(at, end - at));
    if (!extent || *extent < 0)
      return Bad("'" + std::string(text) + "' is not a list of sizes such as 32 or 32,4");
    extents.push_back(*extent);
    at = end + 1;
  }
  return extents;
}

Result<ArraySpec> ParseSpec(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || !text.ends_with(']')) {
    return Bad("'" + std::string(text) + "' is not a type with a shape, such as int32[4096]");
  }
  auto type = ParseType(text.substr(0, open));
  if (!type) return type.error();
  ArraySpec spec{.data_type = *type};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (!inside.empty()) {
    auto extents = ParseExtents(inside);
    if (!extents) return extents.error();
    spec.shape = *extents;
  }
  if (!SizeBytes(spec)) return Bad("'" + std::string(text) + "' is larger than memory can be");
  return spec;
}

std::string FullArrayName(std::string_view text) {
  if (text.find('/') != std::string_view::npos) return std::string(text);
  return "tenants/default/arrays/" + std::string(text);
}

std::optional<std::pair<std::string, std::string>> SplitNamedInput(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  for (size_t i = 0; i < equals; ++i) {
    const char c = text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return std::nullopt;
  }
  return std::make_pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<Argument> ParseArgument(std::string_view text) {
  if (text.empty()) return Bad("An operand is empty");
  if (text.starts_with("out:")) {
    auto spec = ParseSpec(text.substr(4));
    if (!spec) return spec.error();
    return Argument{.kind = Argument::Kind::kOut, .spec = *spec};
  }
  if (text.starts_with("inout:")) {
    if (text.size() == 6) return Bad("'inout:' needs a file after it");
    return Argument{.kind = Argument::Kind::kInOut, .text = std::string(text.substr(6))};
  }
  if (text.starts_with('@')) {
    if (text.size() == 1) return Bad("'@' needs an array's name after it");
    return Argument{.kind = Argument::Kind::kNamed, .text = FullArrayName(text.substr(1))};
  }
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && ParseNumber(text.substr(0, colon))) {
    return ParseTypedNumber(text.substr(0, colon), text.substr(colon + 1));
  }
  if (const auto number = ParseNumber(text))
    return Argument{.kind = Argument::Kind::kNumber, .number = *number};
  return Argument{.kind = Argument::Kind::kFile, .text = std::string(text)};
}

}  // namespace stride::cli
