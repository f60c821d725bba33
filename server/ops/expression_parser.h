#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/scalar.h"

namespace stride::ops {

// Python's arithmetic, comparison and bitwise operators, numbers (`j` for imaginary), names and
// calls.
struct ExpressionNode {
  enum class Kind { kNumber, kName, kOperator, kCall };
  Kind kind;
  size_t position;    // byte offset in the text
  std::string name;   // of the input or constant, of the op table's row (operators), or as called
  WeakScalar number;  // kNumber
  std::vector<int> arguments;  // indices of earlier nodes
};

// Every node comes after its arguments; the last one is the whole expression.
using ExpressionTree = std::vector<ExpressionNode>;

inline constexpr size_t kMaxExpressionBytes = 64 << 10;
inline constexpr int kMaxExpressionNodes = 4096;
inline constexpr int kMaxExpressionDepth = 100;  // of parentheses, calls and unary operators

// EXPRESSION_SYNTAX with the byte position, or SIZE_LIMIT; field `expression.text`.
absl::StatusOr<ExpressionTree> ParseExpression(std::string_view text);

}  // namespace stride::ops
