#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"

// One planner for each kind of operation; plan.cc chooses among them. Inputs are in
// CollectOperands' order, one for each operand. Field paths of errors are relative to the
// Operation.
namespace stride::ops {

using Inputs = absl::Span<const Input>;

absl::StatusOr<Plan> PlanUfunc(const v1::Ufunc& ufunc, Inputs inputs,
                               absl::Span<const Input> existing);
absl::StatusOr<Plan> PlanExpression(const v1::Expression& expression, Inputs inputs,
                                    const Input& existing);
absl::StatusOr<Plan> PlanReduction(const v1::Reduction& reduction, Inputs inputs,
                                   const Input& existing);
absl::StatusOr<Plan> PlanMatmul(const v1::Matmul& matmul, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanCreation(const v1::Creation& creation, const Input& existing);
absl::StatusOr<Plan> PlanRandom(const v1::Creation::Random& random, const Input& existing);
absl::StatusOr<Plan> PlanCopy(const v1::Copy& copy, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanView(const v1::View& view, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanAccumulation(const v1::Accumulation& accumulation, Inputs inputs,
                                      const Input& existing);
absl::StatusOr<Plan> PlanGather(const v1::Gather& gather, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanScatter(const v1::Scatter& scatter, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanCompress(const v1::Compress& compress, Inputs inputs,
                                  const Input& existing);
absl::StatusOr<Plan> PlanNonzero(const v1::Nonzero& nonzero, Inputs inputs,
                                 absl::Span<const Input> existing);
absl::StatusOr<Plan> PlanSort(const v1::Sort& sort, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanSearch(const v1::Search& search, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanLinalg(const v1::Linalg& linalg, Inputs inputs,
                                absl::Span<const Input> existing);
// How many results it has.
int NumLinalgResults(const v1::Linalg& linalg);
absl::StatusOr<Plan> PlanFft(const v1::Fft& fft, Inputs inputs, const Input& existing);
absl::StatusOr<Plan> PlanKernel(const v1::KernelLaunch& launch, Inputs inputs,
                                absl::Span<const Input> existing);

}  // namespace stride::ops
