#include <algorithm>

#include "absl/synchronization/mutex.h"
#include "server/worker/codegen/linalg_shape.h"
#include "server/worker/cpu/lower/blas.h"
#include "server/worker/cpu/lower/linalg_matrix.h"
#include "server/worker/cpu/lower/lowering.h"

namespace stride::cpu {
namespace {

// Matrices with fewer elements gain nothing from several threads each: give each thread its own
// matrices.
constexpr double kSmallMatrix = 128 * 128;

// The matrices of an operand: that of batch 0, and the byte strides of the batch axes.
struct Stack {
  MatrixView first;
  std::vector<int64_t> strides;
};

struct Batch {
  LinalgProblem problem;
  std::vector<int64_t> extents;
  int64_t count = 1;
  std::vector<Stack> inputs, outputs;
};

MatrixView At(const Stack& stack, const std::vector<int64_t>& extents, int64_t index) {
  MatrixView matrix = stack.first;
  for (size_t i = extents.size(); i-- > 0;) {
    matrix.data += index % extents[i] * stack.strides[i];
    index /= extents[i];
  }
  return matrix;
}

// Result of a batch, updated by any thread.
class Outcome {
 public:
  void Add(int64_t index, const absl::Status& status, const LinalgFinding& finding) {
    if (status.ok() && finding.kind == codegen::RoutineFault::kNone) return;
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
    if (finding.kind == codegen::RoutineFault::kNone) return;
    fault_.kind = finding.kind;
    fault_.value = std::max(fault_.value, codegen::MatrixFaultWord(index, finding.info));
  }
  absl::Status Get(int64_t count) {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    fault_.limit = count;
    return codegen::ToStatus(fault_);
  }

 private:
  absl::Mutex mutex_;
  absl::Status status_;
  codegen::RoutineFault fault_;
};

void ComputeOne(const Batch& batch, int64_t index, Outcome* outcome) {
  std::vector<MatrixView> inputs, outputs;
  for (const Stack& stack : batch.inputs) inputs.push_back(At(stack, batch.extents, index));
  for (const Stack& stack : batch.outputs) outputs.push_back(At(stack, batch.extents, index));
  LinalgFinding finding;
  const absl::Status status = ComputeLinalg(batch.problem, inputs, outputs, &finding);
  outcome->Add(index, status, finding);
}

absl::Status Run(const Batch& batch, cpucuda::ThreadPool& pool) {
  Outcome outcome;
  const double elements = 1.0 * batch.problem.m * batch.problem.n;
  if (batch.count > 1 && elements < kSmallMatrix) {
    SetBlasThreads(1);
    pool.ParallelFor(batch.count, batch.count / (int64_t{pool.num_threads()} * 4) + 1,
                     [&](int64_t begin, int64_t end, int) {
                       for (int64_t i = begin; i < end; ++i) ComputeOne(batch, i, &outcome);
                     });
  } else {
    SetBlasThreads(elements < kSmallMatrix ? 1 : pool.num_threads());
    for (int64_t i = 0; i < batch.count; ++i) ComputeOne(batch, i, &outcome);
  }
  return outcome.Get(batch.count);
}

absl::Status AddStack(const LoweringContext& context, const wire::Operand& operand,
                      const codegen::LinalgShape::Matrix& matrix, std::vector<Stack>* stacks,
                      std::vector<Place>* places) {
  auto count = NumElements(matrix.extents);
  if (!count.ok()) return count.status();
  auto place = *count == 0 ? context.arenas->Bytes(operand.arena(), operand.offset(), 0)
                           : context.arenas->Elements(operand, matrix.extents);
  if (!place.ok()) return place.status();
  const int rank = operand.strides_size();
  stacks->push_back({{place->address, matrix.rows, matrix.columns, operand.strides(rank - 2),
                      operand.strides(rank - 1)},
                     {operand.strides().begin(), operand.strides().end() - 2}});
  places->push_back(*std::move(place));
  return absl::OkStatus();
}

LinalgProblem ReadProblem(const wire::LinalgLaunch& launch, DType dtype) {
  LinalgProblem problem;
  problem.function = launch.function();
  problem.m = static_cast<int>(launch.m());
  problem.n = static_cast<int>(launch.n());
  problem.k = static_cast<int>(launch.k());
  problem.upper = launch.upper();
  problem.full = launch.full();
  problem.values_only = launch.values_only();
  problem.dtype = dtype;
  return problem;
}

}  // namespace

absl::StatusOr<Work> LowerLinalg(const LoweringContext& context, const wire::LinalgLaunch& launch) {
  auto shape = codegen::ReadLinalg(launch);
  if (!shape.ok()) return shape.status();
  auto batch = std::make_shared<Batch>();
  batch->problem = ReadProblem(launch, shape->dtype);
  batch->extents = shape->batch_extents;
  batch->count = shape->num_matrices;
  Work work;
  for (int i = 0; i < launch.inputs_size(); ++i) {
    absl::Status s =
        AddStack(context, launch.inputs(i), shape->inputs[i], &batch->inputs, &work.operands);
    if (!s.ok()) return s;
  }
  for (int j = 0; j < launch.outputs_size(); ++j) {
    absl::Status s =
        AddStack(context, launch.outputs(j), shape->outputs[j], &batch->outputs, &work.operands);
    if (!s.ok()) return s;
  }
  if (batch->count == 0) return NoWork();
  work.run = [pool = context.pool, batch] { return Run(*batch, *pool); };
  return work;
}

}  // namespace stride::cpu
