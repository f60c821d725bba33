#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"

// Text signatures of client functions. Errors are INVALID_FIELD at `field`. Memory use is linear in
// the text.
namespace stride::ops {

// The types between the arrows of `float32,int64->float64`, one group more than arrows. Every group
// has at least one type.
using TypeGroups = std::vector<std::vector<DType>>;
absl::StatusOr<TypeGroups> ParseTypes(std::string_view text, std::string_view field);

// NumPy's gufunc signature: `(m?,n),(n,p?)->(m?,p?)`, fixed sizes `(3)`.
struct CoreLayout {
  struct Dimension {
    std::string name;              // as written, without `?`
    std::optional<int64_t> fixed;  // for a dimension written as a number
    bool optional = false;
  };
  std::vector<Dimension> dimensions;
  std::vector<std::vector<int>> operands;  // indices of dimensions; inputs, then outputs
  size_t num_inputs = 0;
};
// Also rejects an output dimension that is neither fixed nor in an input, a name that is optional
// only in some places, and more operands or dimensions than a launch supports.
absl::StatusOr<CoreLayout> ParseLayout(std::string_view text, std::string_view field);

// Returns whether the text is a C identifier of at most 63 bytes.
bool IsIdentifier(std::string_view text);

}  // namespace stride::ops
