#include "server/worker/cuda/compile/demangled_signature.h"

#include <cxxabi.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/store/dtype.h"

namespace stride::cuda {
namespace {

using wire::Parameter;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool ConsumeSuffix(std::string_view* text, std::string_view suffix) {
  if (text->size() < suffix.size() || text->substr(text->size() - suffix.size()) != suffix) {
    return false;
  }
  text->remove_suffix(suffix.size());
  return true;
}

bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

struct NamedType {
  std::string_view name;
  DType dtype;
};
// In the spelling of the C++ ABI's demangler; `long` has 8 bytes on this platform's devices.
constexpr NamedType kTypes[] = {
    {"bool", DType::kBool},        {"char", DType::kInt8},
    {"signed char", DType::kInt8}, {"unsigned char", DType::kUInt8},
    {"short", DType::kInt16},      {"unsigned short", DType::kUInt16},
    {"int", DType::kInt32},        {"unsigned int", DType::kUInt32},
    {"long", DType::kInt64},       {"unsigned long", DType::kUInt64},
    {"long long", DType::kInt64},  {"unsigned long long", DType::kUInt64},
    {"__half", DType::kFloat16},   {"__nv_bfloat16", DType::kBFloat16},
    {"float", DType::kFloat32},    {"double", DType::kFloat64}};

std::optional<DType> TypeNamed(std::string_view name) {
  for (const NamedType& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  // std::, thrust:: and cuda::std::, the last two with inline version namespaces.
  if (name.find("::") != std::string_view::npos) {
    if (ConsumeSuffix(&name, "::complex<float>")) return DType::kComplex64;
    if (ConsumeSuffix(&name, "::complex<double>")) return DType::kComplex128;
  }
  return std::nullopt;
}

// "float const" -> "const float", the usual spelling.
std::string Spelling(std::string_view base, bool is_const) {
  return is_const ? absl::StrCat("const ", std::string(base)) : std::string(base);
}

void DescribePointer(std::string_view pointee, Parameter* parameter) {
  parameter->set_kind(Parameter::KIND_POINTER);
  // Inner pointers, arrays and functions keep the demangler's spelling and have no pointee dtype.
  if (pointee.find_first_of("*([&") != std::string_view::npos) {
    const bool is_const = ConsumeSuffix(&pointee, " const");
    parameter->set_pointee_const(is_const);
    return;
  }
  ConsumeSuffix(&pointee, " volatile");
  const bool is_const = ConsumeSuffix(&pointee, " const");
  parameter->set_pointee_const(is_const);
  parameter->set_type(Spelling(pointee, is_const) + "*");
  if (auto dtype = TypeNamed(pointee)) parameter->set_pointee_dtype(static_cast<int>(*dtype));
}

void DescribeValue(const ParameterType& type, Parameter* parameter) {
  const auto dtype = TypeNamed(type.spelling);
  if (type.is_enum || (dtype && IsInteger(*dtype))) {
    parameter->set_kind(Parameter::KIND_INTEGER);
    parameter->set_is_signed(type.is_enum || IsSigned(*dtype));
  } else if (dtype == DType::kBool) {
    parameter->set_kind(Parameter::KIND_BOOL);
  } else if (dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64) {
    parameter->set_kind(Parameter::KIND_FLOAT);
  } else {
    // bfloat16 too: its size alone does not distinguish it from float16.
    parameter->set_kind(Parameter::KIND_AGGREGATE);
  }
}

}  // namespace

std::vector<std::string> SplitArguments(std::string_view text) {
  std::vector<std::string> parts;
  if (Trim(text).empty()) return parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == ']' || c == '}') --depth;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    parts.emplace_back(Trim(text.substr(start, i - start)));
    start = i + 1;
  }
  return parts;
}

std::optional<std::vector<ParameterType>> ParseSignature(const std::string& mangled) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (demangled == nullptr || status != 0) return std::nullopt;
  const std::string owned(demangled);
  std::free(demangled);
  std::string_view text = owned;
  if (!ConsumePrefix(&text, "stride_signature<") || !ConsumeSuffix(&text, ">")) return std::nullopt;
  const std::vector<std::string> arguments = SplitArguments(text);
  if (arguments.size() != 2) return std::nullopt;
  std::string_view function = arguments[0], numbers = arguments[1];
  if (!ConsumePrefix(&function, "void (*)(") || !ConsumeSuffix(&function, ")") ||
      !ConsumePrefix(&numbers, "stride_numbers<") || !ConsumeSuffix(&numbers, ">")) {
    return std::nullopt;
  }
  const std::vector<std::string> types = SplitArguments(function);
  const std::vector<std::string> sizes = SplitArguments(numbers);
  if (types.size() != sizes.size()) return std::nullopt;
  std::vector<ParameterType> parameters;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string_view digits = sizes[i];
    ConsumeSuffix(&digits, "u");
    uint32_t number = 0;
    if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &number)) {
      return std::nullopt;
    }
    parameters.push_back({types[i], number / 2, number % 2 == 1});
  }
  return parameters;
}

std::optional<DType> ParseVariableType(const std::string& mangled) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (demangled == nullptr || status != 0) return std::nullopt;
  const std::string owned(demangled);
  std::free(demangled);
  std::string_view type = owned;
  if (!ConsumePrefix(&type, "stride_variable<") || !ConsumeSuffix(&type, ">")) return std::nullopt;
  // Extents follow the element's type.
  if (!type.empty() && type.back() == ']') type = Trim(type.substr(0, type.find('[')));
  ConsumeSuffix(&type, " volatile");
  ConsumeSuffix(&type, " const");
  return TypeNamed(Trim(type));
}

wire::Parameter DescribeType(const ParameterType& type) {
  Parameter parameter;
  parameter.set_size(type.size);
  parameter.set_type(type.spelling);
  std::string_view spelling = type.spelling;
  if (ConsumeSuffix(&spelling, "*")) {
    DescribePointer(spelling, &parameter);
  } else if (spelling.find("(*") != std::string_view::npos) {
    parameter.set_kind(Parameter::KIND_POINTER);
  } else {
    DescribeValue(type, &parameter);
  }
  return parameter;
}

}  // namespace stride::cuda
