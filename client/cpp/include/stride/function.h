// Client-defined functions that a daemon stores; operations call them like built-in ones.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stride/operand.h"

namespace stride {

// The computation of a function.
struct FunctionBody {
  // A text such as `a * 2 + b` over the parameters. A function with several results has one text
  // for each.
  static FunctionBody Expression(std::vector<std::string> texts,
                                 std::vector<std::string> parameters) {
    return {.texts = std::move(texts), .parameters = std::move(parameters)};
  }
  // CUDA C++ with a `__device__` function named `entry`. A function with several results writes
  // them through pointers, which follow its arguments.
  static FunctionBody DeviceFunction(std::string source, std::string entry) {
    return {.source = std::move(source), .entry = std::move(entry)};
  }

  std::vector<std::string> texts, parameters;
  std::string source, entry;
};

// An elementwise function. Signatures such as `float32,float32->float32`; may be empty for an
// expression, which is then typed like Operation::Expression.
struct UfuncDefinition {
  std::vector<std::string> signatures;
  FunctionBody body;
  std::optional<Operand> identity;  // a number
  bool associative = false;         // a reduction may combine in any order and grouping
};

// result = finish(combine over all elements of map(inputs)). Signatures such as
// `float32->float64->float32`: the middle type is the accumulator's.
struct ReductionDefinition {
  std::vector<std::string> signatures;
  std::optional<FunctionBody> map;
  FunctionBody combine;
  std::optional<FunctionBody> finish;
  std::optional<Operand> identity;  // a number
};

// A function of sub-arrays, such as `(m,n),(n)->(m)`, called with a `stride_view` for each operand.
struct GufuncDefinition {
  std::string layout;
  std::vector<std::string> signatures;
  FunctionBody body;  // a device function
};

struct FunctionSpec {
  std::string id;  // the name that operations use
  std::variant<UfuncDefinition, ReductionDefinition, GufuncDefinition> definition;
  std::string device_kind;  // `cuda` or `cpu`: for these devices only; empty: every available kind
};

}  // namespace stride
