#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/client_function.h"
#include "server/ops/expression_parser.h"
#include "server/ops/program_builder.h"

namespace stride::ops {

// Returns the argument of a name in the expression, or nullopt for an unknown name.
using ResolveName = std::function<absl::StatusOr<std::optional<Argument>>(const std::string& name)>;

// Adds the tree to the program. `names` are the expression's own names, for suggestions. Null
// `functions` allow only built-in ones. Errors at `field`, with the position in the text.
absl::StatusOr<Argument> LowerExpression(ProgramBuilder& builder, const ExpressionTree& tree,
                                         const ResolveName& resolve,
                                         const std::vector<std::string>& names,
                                         const FunctionTable* functions, std::string_view field);

}  // namespace stride::ops
