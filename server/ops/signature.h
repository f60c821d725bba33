#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"

// How clients write down what a function of theirs takes and gives. Errors are INVALID_FIELD at
// `field`; nothing here is larger than the text.
namespace stride::ops {

// Types between the arrows of `float32,int64->float64`: for each arrow one more group. Every group
// has at least one type.
using TypeGroups = std::vector<std::vector<DType>>;
absl::StatusOr<TypeGroups> ParseTypes(std::string_view text, std::string_view field);

// NumPy's gufunc signature: `(m?,n),(n,p?)->(m?,p?)`, fixed sizes `(3)`.
struct CoreLayout {
  struct Dimension {
    std::string name;              // as written, without `?`
    std::optional<int64_t> fixed;  // its size, when it is a number
    bool optional = false;
  };
  std::vector<Dimension> dimensions;
  std::vector<std::vector<int>> operands;  // indices of dimensions; inputs, then outputs
  size_t num_inputs = 0;
};
// Also refused: a dimension of an output that no input has and that is not fixed, a name that is
// optional in some places only, more operands or dimensions than a launch takes.
absl::StatusOr<CoreLayout> ParseLayout(std::string_view text, std::string_view field);

// A name as in C, of at most 63 bytes.
bool IsIdentifier(std::string_view text);

}  // namespace stride::ops
