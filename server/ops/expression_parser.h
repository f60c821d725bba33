#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/scalar.h"

namespace stride::ops {

// A node: Python's arithmetic, comparison and bitwise operators, numbers (`j` for imaginary), names
// and calls.
struct ExpressionNode {
  enum class Kind { kNumber, kName, kOperator, kCall };
  Kind kind;
  size_t position;             // byte offset in the text
  std::string name;            // as written; operators: the name of the op table's row
  WeakScalar number;           // kNumber
  std::vector<int> arguments;  // indices of earlier nodes
};

// Every node comes after its arguments; the last one is the whole expression.
using ExpressionTree = std::vector<ExpressionNode>;

inline constexpr size_t kMaxExpressionBytes = 64 << 10;
inline constexpr int kMaxExpressionNodes = 4096;
inline constexpr int kMaxExpressionDepth = 100;  // parentheses, calls and unary operators

// EXPRESSION_SYNTAX with the byte position, or SIZE_LIMIT; field `expression.text`.
absl::StatusOr<ExpressionTree> ParseExpression(std::string_view text);

}  // namespace stride::ops
