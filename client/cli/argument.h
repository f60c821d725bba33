// Operands as they are written on the command line.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "stride/operand.h"

namespace stride::cli {

// | text | is |
// |---|---|
// | `x.npy`, `-` | a file; standard input |
// | `@weights`, `@tenants/t/arrays/w` | an array that the daemon keeps |
// | `4096`, `2.5`, `1e-3`, `inf`, `true` | a number, typed as NumPy types Python's |
// | `4096:int32` | a number of exactly that type |
// | `out:int32[4096]` | kernels: a new array of zeros |
// | `inout:x.npy` | kernels: an array that the kernel writes and that is a result too |
struct Argument {
  enum class Kind { kFile, kNamed, kNumber, kOut, kInOut };
  Kind kind = Kind::kFile;
  std::string text;                                      // path or full array name
  std::variant<bool, int64_t, uint64_t, double> number;  // kNumber
  DataType data_type = DataType::kUnspecified;           // kNumber with a type
  ArraySpec spec;                                        // kOut

  // kNumber only.
  Operand NumberOperand() const;
};

// INVALID_ARGUMENT for an unknown type (with a suggestion), a malformed shape, or a number out of
// its type's range.
Result<Argument> ParseArgument(std::string_view text);

// Splits `x=x.npy` into `x` and `x.npy`; nullopt without a leading `name=`.
std::optional<std::pair<std::string, std::string>> SplitNamedInput(std::string_view text);

// Parses `float32[3,4]` or `int64[]`.
Result<ArraySpec> ParseSpec(std::string_view text);

// Returns the full name of an array: `weights` is `tenants/default/arrays/weights`.
std::string FullArrayName(std::string_view text);

// Parses `32`, `32,4` or `32x4x2`.
Result<std::vector<int64_t>> ParseExtents(std::string_view text);

}  // namespace stride::cli
