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

// The argument that a name of the expression stands for; nullopt: the name is none of the
// expression's own.
using ResolveName = std::function<absl::StatusOr<std::optional<Argument>>(const std::string& name)>;

// Adds the tree to the program. `names`, the expression's own, make suggestions better;
// `functions` may be null: then built-in ones alone can be called. Errors at `field`, with the
// place in the text.
absl::StatusOr<Argument> LowerExpression(ProgramBuilder& builder, const ExpressionTree& tree,
                                         const ResolveName& resolve,
                                         const std::vector<std::string>& names,
                                         const FunctionTable* functions, std::string_view field);

}  // namespace stride::ops
