#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/client_function.h"
#include "server/ops/plan.h"
#include "server/ops/program_builder.h"
#include "server/ops/shape.h"

// One planner for each kind of operation; plan.cc chooses among them. Inputs are in
// CollectOperands' order, one for each operand. Field paths of errors are relative to the
// Operation.
namespace stride::ops {

using Inputs = absl::Span<const Input>;

// `functions` may be null: then there are built-in ones alone.
absl::StatusOr<Plan> PlanUfunc(const v1::Ufunc& ufunc, Inputs inputs,
                               absl::Span<const Input> existing, const FunctionTable* functions);
// 1 when it is unknown, which planning tells.
int NumUfuncResults(const v1::Ufunc& ufunc, const FunctionTable* functions);
absl::StatusOr<Plan> PlanExpression(const v1::Expression& expression, Inputs inputs,
                                    const Input& existing, const FunctionTable* functions);
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
absl::StatusOr<Plan> PlanCreation(const v1::Creation& creation, const Input& existing);
absl::StatusOr<Plan> PlanRandom(const v1::Creation::Random& random, const Input& existing);
absl::StatusOr<Plan> PlanCopy(const v1::Copy& copy, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanView(const v1::View& view, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanAccumulation(const v1::Accumulation& accumulation, Inputs inputs,
                                      const Input& existing, const FunctionTable* functions);
absl::StatusOr<Plan> PlanGather(const v1::Gather& gather, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanScatter(const v1::Scatter& scatter, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanCompress(const v1::Compress& compress, Inputs inputs,
                                  const Input& existing);
absl::StatusOr<Plan> PlanNonzero(const v1::Nonzero& nonzero, Inputs inputs,
                                 absl::Span<const Input> existing);
absl::StatusOr<Plan> PlanSort(const v1::Sort& sort, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanTopK(const v1::TopK& top_k, Inputs inputs,
                              absl::Span<const Input> existing);
// More places are a sort.
inline constexpr size_t kMostPartitionPlaces = 8;
absl::StatusOr<Plan> PlanSelect(const v1::Select& select, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanPartition(const v1::Partition& partition, Inputs inputs,
                                   const Input& existing);
absl::StatusOr<Plan> PlanInterpolate(const v1::Interpolate& interpolate, Inputs inputs,
                                     const Input& existing);
absl::StatusOr<Plan> PlanCorrelate(const v1::Correlate& correlate, Inputs inputs,
                                   const Input& existing);
absl::StatusOr<Plan> PlanHistogram(const v1::Histogram& histogram, Inputs inputs,
                                   const Input& existing);
absl::StatusOr<Plan> PlanGroupReduce(const v1::GroupReduce& operation, Inputs inputs,
                                     const Input& existing, const FunctionTable* functions);
absl::StatusOr<Plan> PlanSearch(const v1::Search& search, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanLinalg(const v1::Linalg& linalg, Inputs inputs,
                                absl::Span<const Input> existing);
// How many results it has.
int NumLinalgResults(const v1::Linalg& linalg);
absl::StatusOr<Plan> PlanFft(const v1::Fft& fft, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanReduceAt(const v1::ReduceAt& operation, Inputs inputs,
                                  const Input& existing, const FunctionTable* functions);
absl::StatusOr<Plan> PlanOuter(const v1::Outer& outer, Inputs inputs,
                               absl::Span<const Input> existing, const FunctionTable* functions);
absl::StatusOr<Plan> PlanApplyAt(const v1::ApplyAt& operation, Inputs inputs, const Input& existing,
                                 const FunctionTable* functions);
// 1 when it is unknown, which planning tells.
int NumGufuncResults(const v1::Gufunc& gufunc, const FunctionTable* functions);
absl::StatusOr<Plan> PlanGufunc(const v1::Gufunc& gufunc, Inputs inputs,
                                absl::Span<const Input> existing, const FunctionTable* functions);
// matmul, vecdot, matvec, vecmat.
bool IsBuiltInGufunc(std::string_view name);
// In NumPy's grammar.
std::string_view LayoutOf(std::string_view built_in);
absl::StatusOr<Plan> PlanBuiltInGufunc(const v1::Gufunc& gufunc, Inputs inputs,
                                       const Input& existing);
// Into an output of any strides, by a reduction.
absl::StatusOr<Plan> PlanBuiltInStrided(const v1::Gufunc& gufunc, Inputs inputs,
                                        const Input& existing);
absl::StatusOr<Plan> PlanKernel(const v1::KernelLaunch& launch, Inputs inputs,
                                absl::Span<const Input> existing);

}  // namespace stride::ops
