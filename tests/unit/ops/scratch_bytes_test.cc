// Work memory in addition to arrays, as the scheduler counts it.
#include "server/ops/scratch_bytes.h"

#include "gtest/gtest.h"
#include "server/store/dtype.h"

namespace stride::ops {
namespace {

using Linalg = wire::LinalgLaunch;

wire::Task LinalgOf(Linalg::Function function, int64_t m, int64_t n, bool values_only = false) {
  wire::Task task;
  Linalg* launch = task.mutable_linalg();
  launch->set_function(function);
  launch->set_m(m);
  launch->set_n(n);
  launch->set_k(n);
  launch->set_values_only(values_only);
  launch->add_inputs()->set_dtype(static_cast<int>(DType::kFloat64));
  return task;
}

TEST(ScratchBytes, CountsMatrixCopyAndWorkMemory) {
  const uint64_t matrix = 1000 * 1000 * 8;
  for (auto function : {Linalg::FUNCTION_CHOLESKY, Linalg::FUNCTION_LU, Linalg::FUNCTION_QR})
    EXPECT_EQ(ScratchBytes(LinalgOf(function, 1000, 1000)), matrix) << function;
  for (auto function : {Linalg::FUNCTION_INVERSE, Linalg::FUNCTION_SOLVE})
    EXPECT_EQ(ScratchBytes(LinalgOf(function, 1000, 1000)), 2 * matrix) << function;
  for (auto function : {Linalg::FUNCTION_SVD, Linalg::FUNCTION_EIGH, Linalg::FUNCTION_EIG}) {
    const uint64_t all = ScratchBytes(LinalgOf(function, 1000, 1000)),
                   values = ScratchBytes(LinalgOf(function, 1000, 1000, true));
    EXPECT_GT(values, matrix) << function;
    EXPECT_GT(all, values) << function;
    EXPECT_LT(all, 10 * matrix) << function;
  }
  // Measured: cusolverDnXsyevd, 512 rows of float64, without the matrix.
  EXPECT_GE(ScratchBytes(LinalgOf(Linalg::FUNCTION_EIGH, 512, 512)), 512 * 512 * 8 + 4981132u);
}

TEST(ScratchBytes, BatchedSmallMatricesAreBounded) {
  wire::Task one = LinalgOf(Linalg::FUNCTION_INVERSE, 32, 32), many = one;
  many.mutable_linalg()->add_batch_extents(10);
  many.mutable_linalg()->add_batch_extents(10);
  EXPECT_EQ(ScratchBytes(many), 100 * ScratchBytes(one));
  many.mutable_linalg()->add_batch_extents(1'000'000);
  EXPECT_EQ(ScratchBytes(many), uint64_t{32} << 20);
  wire::Task large = LinalgOf(Linalg::FUNCTION_INVERSE, 4096, 4096);
  const uint64_t alone = ScratchBytes(large);
  large.mutable_linalg()->add_batch_extents(1000);
  EXPECT_EQ(ScratchBytes(large), alone);
}

TEST(ScratchBytes, HugeMatricesDoNotOverflow) {
  const int64_t most = 0x7fffffff;
  for (auto function : {Linalg::FUNCTION_SVD, Linalg::FUNCTION_EIGH, Linalg::FUNCTION_QR})
    EXPECT_GE(ScratchBytes(LinalgOf(function, most, most)), uint64_t{1} << 62) << function;
}

TEST(ScratchBytes, FftScratchEqualsOutputSize) {
  wire::Task task;
  auto* launch = task.mutable_fft();
  launch->set_kind(wire::FftLaunch::KIND_COMPLEX);
  launch->add_extents(3);
  launch->add_extents(1000);
  launch->add_axes(1);
  launch->add_lengths(2000);
  launch->mutable_input()->set_dtype(static_cast<int>(DType::kComplex64));
  launch->mutable_output()->set_dtype(static_cast<int>(DType::kComplex64));
  EXPECT_EQ(ScratchBytes(task), 3u * 2000 * 8);
  launch->set_axes(0, 7);  // no plan
  EXPECT_EQ(ScratchBytes(task), 3u * 1000 * 8);
}

TEST(ScratchBytes, LongRowSortNeedsTwoCopies) {
  wire::Task task;
  auto* launch = task.mutable_routine();
  launch->set_routine(wire::RoutineCode::ROUTINE_SORT);
  launch->add_extents(3);
  for (int64_t option : {0, 0, 0, 0}) launch->add_options(option);
  auto* input = launch->add_operands();
  input->mutable_operand()->set_dtype(static_cast<int>(DType::kFloat32));
  input->add_own_extents(5000);
  EXPECT_EQ(ScratchBytes(task), 2u * 3 * 5000 * 4);
  launch->set_options(1, 1);
  EXPECT_EQ(ScratchBytes(task), 2u * 3 * 5000 * 12);
  input->set_own_extents(0, 1024);
  EXPECT_EQ(ScratchBytes(task), 0u);
}

TEST(ScratchBytes, LoopsNeedNoScratch) {
  wire::Task task;
  EXPECT_EQ(ScratchBytes(task), 0u);
  task.mutable_elementwise();
  EXPECT_EQ(ScratchBytes(task), 0u);
}

}  // namespace
}  // namespace stride::ops
