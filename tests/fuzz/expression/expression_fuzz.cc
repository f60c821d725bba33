// The expression parser: never more nodes than its limit, every node after its arguments.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/ops/expression_parser.h"
#include "tests/fuzz/driver/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using stride::fuzz::Require;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto tree = stride::ops::ParseExpression(text);
  if (!tree.ok()) {
    Require(absl::IsInvalidArgument(tree.status()), "an error that is not the caller's");
    return 0;
  }
  Require(!tree->empty(), "an empty tree");
  Require(tree->size() <= stride::ops::kMaxExpressionNodes, "too many nodes");
  for (size_t i = 0; i < tree->size(); ++i) {
    Require((*tree)[i].position <= size, "a position outside the text");
    for (int argument : (*tree)[i].arguments) {
      Require(argument >= 0 && static_cast<size_t>(argument) < i, "an argument that comes later");
    }
  }
  return 0;
}
