#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/dtype.h"
#include "server/wire/worker.pb.h"

namespace stride::cuda {

// A parameter's type in the demangler's spelling ("float const*"), with facts that only the
// compiler knows.
struct ParameterType {
  std::string spelling;
  uint32_t size = 0;
  bool is_enum = false;
};

// Splits at commas outside brackets: "int, foo<a, b>*" -> {"int", "foo<a, b>*"}. Empty text has no
// parts.
std::vector<std::string> SplitArguments(std::string_view text);

// The parameter types in a mangled `stride_signature<void (*)(...), stride_numbers<...>>`
// (signature_query.h); nullopt for another name.
std::optional<std::vector<ParameterType>> ParseSignature(const std::string& mangled);

// The elements' dtype in a mangled `stride_variable<float [16]>`; nullopt when it is no dtype.
std::optional<DType> ParseVariableType(const std::string& mangled);

// Kind, pointee, size and spelling; leaves the offset 0.
wire::Parameter DescribeType(const ParameterType& type);

}  // namespace stride::cuda
