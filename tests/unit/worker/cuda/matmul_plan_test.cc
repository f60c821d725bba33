#include "server/worker/cuda/lower/matmul_plan.h"

#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

constexpr int64_t kItem = 4;

wire::MatmulLaunch MakeLaunch(int64_t m, int64_t n, int64_t k, std::vector<int64_t> batches,
                              std::vector<int64_t> left, std::vector<int64_t> right) {
  wire::MatmulLaunch launch;
  launch.set_m(m);
  launch.set_n(n);
  launch.set_k(k);
  for (int64_t extent : batches) launch.add_batch_extents(extent);
  for (int64_t stride : left) launch.mutable_left()->add_strides(stride * kItem);
  for (int64_t stride : right) launch.mutable_right()->add_strides(stride * kItem);
  return launch;
}

TEST(MatmulPlanTest, UsesContiguousAndTransposedInPlace) {
  const auto plan = PlanMatmul(MakeLaunch(2, 3, 5, {}, {5, 1}, {1, 7}), kItem);
  EXPECT_FALSE(plan.left.copy || plan.left.transposed);
  EXPECT_EQ(plan.left.leading, 5);
  EXPECT_FALSE(plan.right.copy);
  EXPECT_TRUE(plan.right.transposed);
  EXPECT_EQ(plan.right.leading, 7);
}

TEST(MatmulPlanTest, CopiesLayoutsOutsideBlas) {
  EXPECT_TRUE(PlanMatmul(MakeLaunch(2, 3, 5, {}, {-5, 1}, {3, 1}), kItem).left.copy);
  EXPECT_TRUE(PlanMatmul(MakeLaunch(2, 3, 5, {}, {0, 1}, {3, 1}), kItem).left.copy);
  EXPECT_TRUE(PlanMatmul(MakeLaunch(2, 3, 5, {}, {10, 2}, {3, 1}), kItem).left.copy);
  EXPECT_TRUE(PlanMatmul(MakeLaunch(2, 3, 5, {}, {4, 1}, {3, 1}), kItem).left.copy);
  EXPECT_FALSE(PlanMatmul(MakeLaunch(2, 3, 5, {}, {8, 1}, {3, 1}), kItem).left.copy);
}

TEST(MatmulPlanTest, IgnoresStridesOfSingleElements) {
  const auto plan = PlanMatmul(MakeLaunch(1, 1, 5, {}, {-99, 1}, {1, 0}), kItem);
  EXPECT_FALSE(plan.left.copy);
  EXPECT_FALSE(plan.right.copy);
  EXPECT_GE(plan.left.leading, 5);
}

TEST(MatmulPlanTest, FoldsBatchTimesOneMatrix) {
  const auto plan = PlanMatmul(MakeLaunch(2, 3, 5, {4}, {10, 5, 1}, {0, 3, 1}), kItem);
  EXPECT_EQ(plan.m, 8);
  EXPECT_EQ(plan.batch_count, 1);
  EXPECT_TRUE(plan.loops.empty());
}

TEST(MatmulPlanTest, MergesBatchAxesAndLoopsOverTheRest) {
  auto plan = PlanMatmul(MakeLaunch(2, 3, 5, {6, 4}, {40, 10, 5, 1}, {60, 15, 3, 1}), kItem);
  EXPECT_EQ(plan.batch_count, 24);
  EXPECT_EQ(plan.output_batch_stride, 6);
  EXPECT_TRUE(plan.loops.empty());
  // The right factor repeats over the outer axis.
  plan = PlanMatmul(MakeLaunch(2, 3, 5, {6, 4}, {40, 10, 5, 1}, {0, 15, 3, 1}), kItem);
  EXPECT_EQ(plan.batch_count, 4);
  ASSERT_EQ(plan.loops.size(), 1u);
  EXPECT_EQ(plan.loops[0].extent, 6);
  EXPECT_EQ(plan.loops[0].left_step, 40);
  EXPECT_EQ(plan.loops[0].right_step, 0);
  EXPECT_EQ(plan.loops[0].output_step, 24);
}

TEST(MatmulPlanTest, CopiesRepeatedFactorOnce) {
  const auto plan = PlanMatmul(MakeLaunch(2, 3, 5, {4}, {0, 2, 4}, {15, 3, 1}), kItem);
  EXPECT_TRUE(plan.left.copy);
  EXPECT_EQ(plan.left.NumCopies(plan.batch_count), 1);
  EXPECT_EQ(plan.right.NumCopies(plan.batch_count), 4);
}

}  // namespace
}  // namespace stride::cuda
