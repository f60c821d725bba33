#include "server/ops/sharding.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/ops/partial_results.h"
#include "server/ops/pieces.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;

TEST(SplitAxisTest, SplitsLikeNumPyArraySplit) {
  EXPECT_THAT(SplitAxis(10, 4), ElementsAre(0, 3, 6, 8, 10));
  EXPECT_THAT(SplitAxis(8, 4), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(SplitAxis(2, 4), ElementsAre(0, 1, 2, 2, 2));
  EXPECT_THAT(SplitAxis(0, 2), ElementsAre(0, 0, 0));
}

TEST(SliceOfTest, MovesToTheFirstElement) {
  const ArrayInfo slice = SliceOf(Contiguous(DType::kFloat32, {4, 6}), 1, 2, 5);
  EXPECT_THAT(slice.shape, ElementsAre(4, 3));
  EXPECT_EQ(slice.offset, 8);
  EXPECT_THAT(slice.strides, ElementsAre(24, 4));
}

// Every byte of the whole has one position, and each part's bytes are in order.
TEST(ByteRunsTest, AssignsEveryByteInOrder) {
  for (const Shape& shape : {Shape{7}, Shape{5, 3}, Shape{2, 5, 3}, Shape{1, 4, 2}, Shape{3, 2}}) {
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      for (size_t parts : {1u, 2u, 3u, 4u}) {
        const ArrayInfo whole = Contiguous(DType::kInt16, shape);
        const ByteRuns runs(whole, axis, parts);
        std::vector<int64_t> next(parts, 0);
        for (int64_t at = 0; at < whole.size_bytes(); ++at) {
          const ByteRuns::Run run = runs.At(at);
          ASSERT_LT(run.part, static_cast<int>(parts));
          ASSERT_GT(run.size, 0);
          ASSERT_EQ(runs.Before(run.part, at), next[run.part]);
          ASSERT_EQ(runs.PositionOf(run.part, next[run.part]), at);
          ++next[run.part];
        }
        const std::vector<int64_t> begin = SplitAxis(shape[axis], parts);
        for (size_t p = 0; p < parts; ++p) {
          const int64_t rows = whole.num_elements() / shape[axis];
          EXPECT_EQ(next[p], rows * (begin[p + 1] - begin[p]) * 2);
          EXPECT_EQ(runs.Before(static_cast<int>(p), whole.size_bytes()), next[p]);
        }
      }
    }
  }
}

class DivideTest : public ::testing::Test {
 protected:
  SpreadArray Split(Shape shape, int axis, std::string field, std::vector<int> devices = {0, 1}) {
    spreads_.push_back(
        std::make_unique<Spread>(Spread{axis, /*replicated=*/false, std::move(devices)}));
    return {spreads_.back().get(), std::move(shape), std::move(field)};
  }
  SpreadArray Replicated(Shape shape, std::string field) {
    spreads_.push_back(std::make_unique<Spread>(Spread{0, /*replicated=*/true, {0, 1}}));
    return {spreads_.back().get(), std::move(shape), std::move(field)};
  }
  static SpreadArray InOnePiece(Shape shape, std::string field) {
    return {nullptr, std::move(shape), std::move(field)};
  }

  // New outputs.
  absl::StatusOr<Division> Cut(const v1::Operation& operation, std::vector<SpreadArray> inputs,
                               std::vector<Shape> outputs) {
    return Divide(operation, inputs, std::vector<SpreadArray>(outputs.size()), outputs);
  }

  static v1::Operation Matmul() {
    v1::Operation operation;
    operation.mutable_matmul();
    return operation;
  }
  static v1::Operation Sum(std::vector<int> axes, bool keep_dims = false) {
    v1::Operation operation;
    operation.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
    for (int axis : axes) operation.mutable_reduction()->add_axes(axis);
    operation.mutable_reduction()->set_keep_dims(keep_dims);
    return operation;
  }

  std::vector<std::unique_ptr<Spread>> spreads_;
};

TEST_F(DivideTest, ElementwiseAlignsBroadcastAxes) {
  auto cut = Cut(testing::UfuncOf("add", 3),
                 {Split({4, 6}, 1, "a"), InOnePiece({6}, "b"), InOnePiece({4, 1}, "c")}, {{4, 6}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_FALSE(cut->partial);
  EXPECT_EQ(cut->length, 6);
  EXPECT_THAT(cut->input_axes, ElementsAre(1, 0, -1));
  EXPECT_THAT(cut->output_axes, ElementsAre(1));
}

TEST_F(DivideTest, ElementwiseOfDifferentRanks) {
  auto cut = Cut(testing::UfuncOf("add", 2), {Split({6}, 0, "a"), Split({4, 6}, 1, "b")}, {{4, 6}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->input_axes, ElementsAre(0, 1));
}

TEST_F(DivideTest, MismatchNamesTheOperandAndTheFix) {
  auto axes =
      Cut(testing::UfuncOf("add", 2),
          {Split({6, 6}, 0, "ufunc.inputs[0]"), Split({6, 6}, 1, "ufunc.inputs[1]")}, {{6, 6}});
  EXPECT_EQ(testing::FieldOf(axes.status()), "ufunc.inputs[1]");
  EXPECT_THAT(std::string(axes.status().message()), HasSubstr("Copy it"));
  auto devices =
      Cut(testing::UfuncOf("add", 2),
          {Split({6}, 0, "ufunc.inputs[0]"), Split({6}, 0, "ufunc.inputs[1]", {1, 0})}, {{6}});
  EXPECT_EQ(testing::FieldOf(devices.status()), "ufunc.inputs[1]");
  auto broadcast = Cut(testing::UfuncOf("add", 2),
                       {InOnePiece({3, 6}, "a"), Split({1, 6}, 0, "ufunc.inputs[1]")}, {{3, 6}});
  EXPECT_EQ(testing::FieldOf(broadcast.status()), "ufunc.inputs[1]");
}

TEST_F(DivideTest, ReplicatedOperandsRunEverywhere) {
  v1::Operation sort;
  sort.mutable_sort();
  auto cut = Cut(sort, {Replicated({6}, "sort.input")}, {{6}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_TRUE(cut->replicated);
  auto refused = Cut(sort, {Split({6}, 0, "sort.input")}, {{6}});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("sort"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("sort.input"));
}

TEST_F(DivideTest, ReductionsKeepOrLoseTheSplitAxis) {
  auto kept = Cut(Sum({0}), {Split({4, 6, 5}, 2, "x")}, {{6, 5}});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(kept->output_axes, ElementsAre(1));
  auto with_dims = Cut(Sum({0}, true), {Split({4, 6, 5}, 2, "x")}, {{1, 6, 5}});
  EXPECT_THAT(with_dims->output_axes, ElementsAre(2));
  auto lost = Cut(Sum({-1}), {Split({4, 6, 5}, 2, "x")}, {{4, 6}});
  EXPECT_TRUE(lost->partial);
  EXPECT_EQ(lost->length, 5);
  EXPECT_TRUE(Cut(Sum({}), {Split({4, 6}, 1, "x")}, {{}})->partial);
}

TEST_F(DivideTest, MatmulIsSplitByItsAxes) {
  auto rows = Cut(Matmul(), {Split({4, 6}, 0, "l"), InOnePiece({6, 5}, "r")}, {{4, 5}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->input_axes, ElementsAre(0, -1));
  EXPECT_THAT(rows->output_axes, ElementsAre(0));
  auto columns = Cut(Matmul(), {InOnePiece({4, 6}, "l"), Split({6, 5}, 1, "r")}, {{4, 5}});
  EXPECT_THAT(columns->input_axes, ElementsAre(-1, 1));
  EXPECT_THAT(columns->output_axes, ElementsAre(1));
  auto inner = Cut(Matmul(), {Split({4, 6}, 1, "l"), InOnePiece({6}, "r")}, {{4}});
  EXPECT_TRUE(inner->partial);
  EXPECT_THAT(inner->input_axes, ElementsAre(1, 0));
  EXPECT_EQ(inner->length, 6);
  auto batch = Cut(Matmul(), {Split({3, 4, 6}, 0, "l"), InOnePiece({6, 5}, "r")}, {{3, 4, 5}});
  EXPECT_THAT(batch->input_axes, ElementsAre(0, -1));
  EXPECT_THAT(batch->output_axes, ElementsAre(0));
  auto row_vector = Cut(Matmul(), {InOnePiece({6}, "l"), Split({6, 5}, 1, "r")}, {{5}});
  EXPECT_THAT(row_vector->output_axes, ElementsAre(0));
  auto both = Cut(Matmul(), {Split({4, 6}, 0, "l"), Split({6, 5}, 1, "r")}, {{4, 5}});
  EXPECT_EQ(testing::FieldOf(both.status()), "r");
}

TEST_F(DivideTest, ExistingOutputsNeedTheSameSharding) {
  const std::vector<Shape> outputs = {{6}};
  auto divide = [&](SpreadArray out) {
    return Divide(testing::UfuncOf("negative", 1), {{Split({6}, 0, "ufunc.inputs[0]")}},
                  {{std::move(out)}}, outputs);
  };
  EXPECT_TRUE(divide(Split({6}, 0, "outputs[0]")).ok());
  EXPECT_EQ(testing::FieldOf(divide(InOnePiece({6}, "outputs[0]")).status()), "outputs[0]");
  EXPECT_EQ(testing::FieldOf(divide(Replicated({6}, "outputs[0]")).status()), "outputs[0]");
}

TEST(PartialResultsTest, PartialResultsUseTheFinalAccumulatorType) {
  v1::Operation mean;
  mean.mutable_reduction()->set_function(v1::Reduction::FUNCTION_MEAN);
  auto split = SplitReduction(mean, DType::kFloat16);
  ASSERT_TRUE(split.ok()) << split.status();
  ASSERT_EQ(split->steps.size(), 1u);
  EXPECT_EQ(split->steps[0].operation.reduction().function(), v1::Reduction::FUNCTION_SUM);
  EXPECT_EQ(split->steps[0].operation.reduction().data_type(), v1::DATA_TYPE_FLOAT32);
}

TEST(PartialResultsTest, InitialValueIsUsedOnce) {
  v1::Operation sum;
  sum.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
  sum.mutable_reduction()->mutable_initial()->set_int_value(5);
  auto split = SplitReduction(sum, DType::kInt64);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_TRUE(split->first_steps[0].operation.reduction().has_initial());
  EXPECT_FALSE(split->steps[0].operation.reduction().has_initial());
}

TEST(PartialResultsTest, UnsupportedCombinationIsUnimplemented) {
  v1::Operation fold;
  fold.mutable_reduction()->set_function_name("subtract");
  auto split = SplitReduction(fold, DType::kInt64);
  EXPECT_EQ(split.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(split.status().message()), HasSubstr("subtract"));
}

// The parts of a creation are cut from its plan, without the original shape.
TEST(PartOfCreationTest, CountsFromItsFirstElement) {
  v1::Operation range;
  range.mutable_creation()->mutable_range()->mutable_stop()->set_int_value(10);
  range.add_outputs()->set_handle(1);
  const Plan whole = testing::Good(range, {});
  auto part = PartOfCreation(whole, 6, Contiguous(DType::kInt64, {4}));
  ASSERT_TRUE(part.has_value());
  EXPECT_THAT(part->task.elementwise().extents(), ElementsAre(4));
  EXPECT_EQ(part->task.elementwise().scalars_size(), whole.task.elementwise().scalars_size() + 1);
}

}  // namespace
}  // namespace stride::ops
