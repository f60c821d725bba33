#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/client_function.h"
#include "server/ops/plan.h"
#include "server/ops/program_builder.h"
#include "server/ops/shape.h"

// Planners that several files use; the other kinds' are in their files, next to their rows. Inputs
// are in the order of OperandsOf, one for each operand. Field paths of errors are relative to the
// Operation.
namespace stride::ops {

using Inputs = absl::Span<const Input>;

// `functions` may be null: then there are built-in ones alone.
absl::StatusOr<Plan> PlanUfunc(const v1::Ufunc& ufunc, Inputs inputs,
                               absl::Span<const Input> existing, const FunctionTable* functions);
// 1 for an unknown function, which the planner reports.
int NumUfuncResults(std::string_view function, const FunctionTable* functions);
// An expression before its elements are used. Slots of the program are places among the inputs.
struct ExpressionElements {
  ProgramBuilder program;
  Value value;
  Shape shape;
};
absl::StatusOr<ExpressionElements> ReadElements(const v1::Expression& expression, Inputs inputs,
                                                const FunctionTable* functions,
                                                std::string_view field);
absl::StatusOr<Plan> PlanReduction(const v1::Reduction& reduction, Inputs inputs,
                                   const Input& existing, const FunctionTable* functions);
// Whether a reduction may compute its elements as it reads them: by `function`, without `where`.
bool TakesElements(const v1::Reduction& reduction);
// Such a reduction of these elements in place of its input. `inputs`: by slot. Its result equals
// that of an array of the elements to the bit.
absl::StatusOr<Plan> PlanReductionOf(const v1::Reduction& reduction, ExpressionElements elements,
                                     Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanMatmul(const v1::Matmul& matmul, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanRandom(const v1::Creation::Random& random, const Input& existing);
// More places are a sort.
inline constexpr size_t kMostPartitionPlaces = 8;
// matmul, vecdot, matvec, vecmat.
bool IsBuiltInGufunc(std::string_view name);
// In NumPy's grammar.
std::string_view LayoutOf(std::string_view built_in);
absl::StatusOr<Plan> PlanBuiltInGufunc(const v1::Gufunc& gufunc, Inputs inputs,
                                       const Input& existing);
// Into an output of any strides, by a reduction.
absl::StatusOr<Plan> PlanBuiltInStrided(const v1::Gufunc& gufunc, Inputs inputs,
                                        const Input& existing);

}  // namespace stride::ops
