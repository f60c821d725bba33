#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/promotion.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

using Function = v1::Linalg;

// Libraries count rows and columns in 32 bits.
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

// Rows and columns of one result, a vector's columns 0, and its type.
struct Result {
  int64_t rows = 0;
  int64_t columns = 0;
  bool is_vector = false;
  DType dtype = DType::kFloat64;
};

// The operands after the checks.
struct Problem {
  int64_t m = 0, n = 0, k = 0;
  bool vector_right = false;
  Shape batch;
  DType dtype = DType::kFloat64;
};

bool IsSquareFunction(int function) {
  return function == Function::FUNCTION_CHOLESKY || function == Function::FUNCTION_EIGH ||
         function == Function::FUNCTION_INVERSE || function == Function::FUNCTION_SOLVE ||
         function == Function::FUNCTION_EIG;
}

std::string FieldOf(size_t operand) { return absl::StrCat("linalg.operands[", operand, "]"); }

// The library's types: integers become float64.
absl::StatusOr<DType> ComputeType(Inputs inputs) {
  DType dtype = inputs[0]->dtype;
  if (inputs.size() > 1) dtype = PromoteTypes(dtype, inputs[1]->dtype);
  if (IsBool(dtype) || IsInteger(dtype)) return DType::kFloat64;
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return dtype;
  return InvalidField(
      v1::ERROR_REASON_DATA_TYPE_MISMATCH, FieldOf(0),
      absl::StrCat("linear algebra is of float32, float64, complex64 and complex128; convert the "
                   "operand first. Its type: ",
                   std::string(Name(dtype))));
}

absl::Status CheckMatrix(const ArrayInfo& array, bool square) {
  const size_t rank = array.shape.size();
  if (rank < 2) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, FieldOf(0),
                        absl::StrCat("a matrix, or a batch of them, is needed; the array has the "
                                     "shape ",
                                     ToString(array.shape)));
  }
  if (square && array.shape[rank - 1] != array.shape[rank - 2]) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, FieldOf(0),
        absl::StrCat("a square matrix is needed; the array has the shape ", ToString(array.shape)));
  }
  return absl::OkStatus();
}

absl::Status ReadRightSide(const ArrayInfo& right, Problem* problem) {
  Shape batch;
  if (right.shape.size() == 1) {
    problem->vector_right = true;
    problem->k = 1;
  } else if (right.shape.size() > 1) {
    problem->k = right.shape.back();
    batch.assign(right.shape.begin(), right.shape.end() - 2);
  }
  const size_t columns = problem->vector_right ? 0 : 1;
  if (right.shape.empty() || right.shape[right.shape.size() - 1 - columns] != problem->n) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, FieldOf(1),
        absl::StrCat("the right-hand side must have as many rows as the matrix: ", problem->n,
                     "; the array has the shape ", ToString(right.shape)));
  }
  auto common = BroadcastShapes({problem->batch, batch}, FieldOf(1));
  if (!common.ok()) return common.status();
  problem->batch = *std::move(common);
  return absl::OkStatus();
}

absl::StatusOr<Problem> ReadProblem(const v1::Linalg& linalg, Inputs inputs) {
  const size_t count = linalg.function() == Function::FUNCTION_SOLVE ? 2 : 1;
  if (inputs.size() != count) {
    return InvalidField(
        v1::ERROR_REASON_ARGUMENT_COUNT, "linalg.operands",
        absl::StrCat("the function takes ", count, count == 1 ? " operand" : " operands",
                     ", given: ", inputs.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    if (auto array = NeedArray(inputs[i], FieldOf(i)); !array.ok()) return array.status();
  }
  const ArrayInfo& matrix = *inputs[0];
  if (auto s = CheckMatrix(matrix, IsSquareFunction(linalg.function())); !s.ok()) return s;
  auto dtype = ComputeType(inputs);
  if (!dtype.ok()) return dtype.status();
  Problem problem;
  problem.dtype = *dtype;
  const size_t rank = matrix.shape.size();
  problem.m = matrix.shape[rank - 2];
  problem.n = matrix.shape[rank - 1];
  problem.batch.assign(matrix.shape.begin(), matrix.shape.end() - 2);
  if (count == 2) {
    if (auto s = ReadRightSide(*inputs[1], &problem); !s.ok()) return s;
  }
  for (int64_t extent : {problem.m, problem.n, problem.k}) {
    if (extent <= kMaxExtent) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "linalg.operands",
        absl::StrCat("a matrix has too many rows or columns: ", extent, ", limit: ", kMaxExtent));
  }
  return problem;
}

DType RealPart(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

DType ComplexOf(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kComplex64;
  return dtype == DType::kFloat64 ? DType::kComplex128 : dtype;
}

std::vector<Result> ResultsOf(const v1::Linalg& linalg, const Problem& problem) {
  const auto [m, n, k] = std::tuple(problem.m, problem.n, problem.k);
  const DType dtype = problem.dtype, real = RealPart(dtype);
  const int64_t least = std::min(m, n);
  switch (linalg.function()) {
    case Function::FUNCTION_QR: {
      const int64_t inner = linalg.full() ? m : least;
      if (linalg.values_only()) return {{inner, n, false, dtype}};
      return {{m, inner, false, dtype}, {inner, n, false, dtype}};
    }
    case Function::FUNCTION_SVD:
      if (linalg.values_only()) return {{least, 1, true, real}};
      return {{m, linalg.full() ? m : least, false, dtype},
              {least, 1, true, real},
              {linalg.full() ? n : least, n, false, dtype}};
    case Function::FUNCTION_EIGH:
      if (linalg.values_only()) return {{n, 1, true, real}};
      return {{n, 1, true, real}, {n, n, false, dtype}};
    case Function::FUNCTION_EIG:
      if (linalg.values_only()) return {{n, 1, true, ComplexOf(dtype)}};
      return {{n, 1, true, ComplexOf(dtype)}, {n, n, false, ComplexOf(dtype)}};
    case Function::FUNCTION_SOLVE:
      return {{n, k, problem.vector_right, dtype}};
    case Function::FUNCTION_LU:
      return {{m, n, false, dtype}, {least, 1, true, DType::kInt64}};
    default:
      return {{m, n, false, dtype}};
  }
}

// Which of the attributes the function has.
absl::Status CheckAttributes(const v1::Linalg& linalg) {
  const int function = linalg.function();
  const bool qr_or_svd = function == Function::FUNCTION_QR || function == Function::FUNCTION_SVD;
  const struct {
    const char* field;
    bool set, allowed;
  } attributes[] = {
      {"linalg.upper", linalg.upper(),
       function == Function::FUNCTION_CHOLESKY || function == Function::FUNCTION_EIGH},
      {"linalg.full", linalg.full(), qr_or_svd},
      {"linalg.values_only", linalg.values_only(),
       qr_or_svd || function == Function::FUNCTION_EIGH || function == Function::FUNCTION_EIG},
  };
  for (const auto& [field, set, allowed] : attributes) {
    if (!set || allowed) continue;
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        "the function has no such choice; leave it unset");
  }
  return absl::OkStatus();
}

// Byte strides of the batch axes, then row, then column.
std::vector<int64_t> MatrixStrides(const ArrayInfo& array, const Shape& batch, bool is_vector) {
  ArrayInfo matrix = array;
  if (is_vector) {
    matrix.shape.push_back(1);
    matrix.strides.push_back(ItemSize(array.dtype));
  }
  Shape shape = batch;
  shape.insert(shape.end(), matrix.shape.end() - 2, matrix.shape.end());
  return BroadcastStrides(matrix, shape);
}

double Count(const Shape& shape) {
  double count = 1;
  for (int64_t extent : shape) count *= static_cast<double>(extent);
  return count;
}

// Roughly what LAPACK's manual says of each; the scheduler learns the truth from run times.
double FlopsOf(const v1::Linalg& linalg, const Problem& problem) {
  const double m = problem.m, n = problem.n, least = std::min(m, n), k = problem.k;
  double flops = 2 * m * n * least;
  if (linalg.function() == Function::FUNCTION_CHOLESKY) flops /= 6;
  if (linalg.function() == Function::FUNCTION_SVD || linalg.function() == Function::FUNCTION_EIGH)
    flops *= linalg.values_only() ? 2 : 6;
  if (linalg.function() == Function::FUNCTION_EIG) flops *= linalg.values_only() ? 5 : 13;
  return (flops + 2 * n * n * k) * Count(problem.batch) * (IsComplex(problem.dtype) ? 4 : 1);
}

absl::StatusOr<Plan> PlanLinalg(const v1::Linalg& linalg, Inputs inputs,
                                absl::Span<const Input> existing) {
  if (linalg.function() < Function::FUNCTION_CHOLESKY ||
      linalg.function() > Function::FUNCTION_EIG) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "linalg.function",
                        absl::StrCat("there is no such function: ", linalg.function()));
  }
  if (auto s = CheckAttributes(linalg); !s.ok()) return s;
  auto problem = ReadProblem(linalg, inputs);
  if (!problem.ok()) return problem.status();

  Plan plan;
  auto* launch = plan.task.mutable_linalg();
  const std::vector<Result> results = ResultsOf(linalg, *problem);
  for (size_t j = 0; j < results.size(); ++j) {
    const Result& result = results[j];
    Shape shape = problem->batch;
    shape.push_back(result.rows);
    if (!result.is_vector) shape.push_back(result.columns);
    auto output = ChooseOutput(result.dtype, shape, j < existing.size() ? existing[j] : Input(),
                               absl::StrCat("outputs[", j, "]"));
    if (!output.ok()) return output.status();
    // Libraries write their own type, without gaps.
    plan.through_new_output |= output->dtype != result.dtype || !output->IsContiguous();
    Shape matrix = problem->batch;
    matrix.push_back(result.rows);
    matrix.push_back(result.columns);
    *launch->add_outputs() = MakeOperand(static_cast<uint32_t>(inputs.size() + j), *output,
                                         Contiguous(result.dtype, matrix).strides);
    plan.bytes += static_cast<double>(output->size_bytes());
    plan.outputs.push_back(*output);
  }
  bool converts = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool converted = inputs[i]->dtype != problem->dtype;
    plan.converted_inputs.push_back(converted ? std::optional<DType>(problem->dtype)
                                              : std::nullopt);
    converts |= converted;
    *launch->add_inputs() =
        MakeOperand(static_cast<uint32_t>(i), *inputs[i],
                    MatrixStrides(*inputs[i], problem->batch, i == 1 && problem->vector_right));
    plan.bytes += static_cast<double>(inputs[i]->size_bytes());
  }
  if (!converts) plan.converted_inputs.clear();
  if (converts || plan.through_new_output) {
    plan.task.Clear();
    return plan;
  }
  // Kept apart from the contract's, with the same numbers.
  launch->set_function(static_cast<wire::LinalgLaunch::Function>(linalg.function()));
  launch->set_m(problem->m);
  launch->set_n(problem->n);
  launch->set_k(problem->k);
  launch->mutable_batch_extents()->Assign(problem->batch.begin(), problem->batch.end());
  launch->set_upper(linalg.upper());
  launch->set_full(linalg.full());
  launch->set_values_only(linalg.values_only());
  plan.flops = FlopsOf(linalg, *problem);
  return plan;
}

// Solve with a vector for each element on the right: the vectors become columns, since a matrix of
// them would be one right side for all elements.
absl::Status BatchSolveOfVectors(Batcher& batcher, v1::Operation* operation) {
  if (operation->outputs(0).existing()) return batcher.NoRule(*operation);
  auto* linalg = operation->mutable_linalg();
  const size_t rank = batcher.Find(linalg->operands(0))->rank();
  auto left = batcher.WithRank(*batcher.Find(linalg->operands(0)), rank);
  if (!left.ok()) return left.status();
  const Batched right = *batcher.Find(linalg->operands(1));
  Shape shape = right.info.shape;
  shape.push_back(1);
  auto column = batcher.Reshaped(right, shape);
  if (column.ok()) column = batcher.WithRank(*column, rank);
  if (!column.ok()) return column.status();
  batcher.Replace(linalg->mutable_operands(0), *left);
  batcher.Replace(linalg->mutable_operands(1), *column);
  const std::vector<Input> inputs = {left->info, column->info}, existing(1);
  auto plan = PlanLinalg(*linalg, inputs, existing);
  if (!plan.ok()) return plan.status();
  Shape result = plan->outputs[0].shape;
  result.pop_back();
  return batcher.FinishReshaped(operation, {result});
}

// Axes before the last two are a batch of matrices already.
absl::Status BatchLinalg(Batcher& batcher, v1::Operation* operation) {
  const v1::Linalg& linalg = operation->linalg();
  if (linalg.operands_size() == 0 || batcher.Find(linalg.operands(0))->rank() < 2)
    return batcher.NoRule(*operation);
  if (linalg.function() != Function::FUNCTION_SOLVE || linalg.operands_size() != 2)
    return absl::OkStatus();
  if (batcher.Find(linalg.operands(1))->rank() != 1) return batcher.Align(operation);
  return batcher.IsBatched(linalg.operands(1)) ? BatchSolveOfVectors(batcher, operation)
                                               : absl::OkStatus();
}

int LinalgResults(const v1::Operation& o, Inputs, const FunctionTable*) {
  return static_cast<int>(ResultsOf(o.linalg(), Problem()).size());
}

}  // namespace

const OperationKind kLinalgKind = {
    .name = "linalg",
    .label = "linalg ",
    .detail =
        [](const v1::Operation& o) {
          return FunctionLabel(v1::Linalg::Function_Name(o.linalg().function()));
        },
    .operands = [](const v1::Operation& o,
                   OperandList& list) { list.AddEach(o.linalg().operands()); },
    .plan = PlanBy<&v1::Operation::linalg, PlanLinalg>,
    .rules = {LinalgResults, WholeKey, BatchLinalg, Undivided},
    .lists = Bounded<&v1::Operation::linalg, kMaxListedAxes, &v1::Linalg::operands_size>,
};

}  // namespace stride::ops
