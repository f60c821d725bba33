#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using Extents = std::vector<int64_t>;
using testing::Array;

class View {
 public:
  View() { operation_.add_outputs()->set_handle(9); }
  v1::View::Slice& Slice(int axis) {
    auto* slice = operation_.mutable_view()->add_steps()->mutable_slice();
    slice->set_axis(axis);
    return *slice;
  }
  View& Transpose(std::vector<int32_t> axes = {}) {
    auto* step = operation_.mutable_view()->add_steps()->mutable_transpose();
    step->mutable_axes()->Assign(axes.begin(), axes.end());
    return *this;
  }
  View& Reshape(Extents shape) {
    operation_.mutable_view()->add_steps()->mutable_reshape()->mutable_shape()->Assign(
        shape.begin(), shape.end());
    return *this;
  }
  View& Broadcast(Extents shape) {
    operation_.mutable_view()->add_steps()->mutable_broadcast()->mutable_shape()->Assign(
        shape.begin(), shape.end());
    return *this;
  }
  absl::StatusOr<ArrayInfo> Of(const ArrayInfo& array) {
    operation_.mutable_view()->mutable_input()->set_handle(1);
    auto plan = PlanOperation(operation_, {Input(array)}, {});
    if (!plan.ok()) return plan.status();
    EXPECT_TRUE(plan->is_view);
    EXPECT_FALSE(plan->code.has_value());
    return plan->outputs[0];
  }

 private:
  v1::Operation operation_;
};

const ArrayInfo kTen = Contiguous(DType::kInt32, {10});

TEST(View, SlicesFollowPython) {
  View a;
  a.Slice(0).set_start(2);
  auto info = *a.Of(kTen);
  EXPECT_EQ(info.shape, Extents{8});
  EXPECT_EQ(info.offset, 8);
  View reversed;
  reversed.Slice(-1).set_step(-1);
  info = *reversed.Of(kTen);
  EXPECT_EQ(info.shape, Extents{10});
  EXPECT_EQ(info.offset, 36);
  EXPECT_EQ(info.strides, Extents{-4});
  View b;
  auto& slice = b.Slice(0);
  slice.set_start(-3);
  slice.set_stop(-100);
  slice.set_step(-4);  // 7, 3
  info = *b.Of(kTen);
  EXPECT_EQ(info.shape, Extents{2});
  EXPECT_EQ(info.offset, 28);
  View empty;
  auto& none = empty.Slice(0);
  none.set_start(5);
  none.set_stop(5);
  EXPECT_EQ(empty.Of(kTen)->shape, Extents{0});
  View extreme;
  auto& least = extreme.Slice(0);
  least.set_step(INT64_MIN);
  EXPECT_EQ(extreme.Of(kTen)->shape, Extents{1});
  View zero;
  zero.Slice(0).set_step(0);
  EXPECT_FALSE(zero.Of(kTen).ok());
}

TEST(View, IndexDropsTheAxis) {
  View view;
  auto& slice = view.Slice(0);
  slice.set_index(true);
  slice.set_start(-1);
  auto info = *view.Of(Contiguous(DType::kInt8, {3, 4}));
  EXPECT_EQ(info.shape, Extents{4});
  EXPECT_EQ(info.offset, 8);
  View out;
  auto& beyond = out.Slice(0);
  beyond.set_index(true);
  beyond.set_start(3);
  EXPECT_EQ(ReasonOf(out.Of(Contiguous(DType::kInt8, {3, 4})).status()),
            v1::ERROR_REASON_INVALID_FIELD);
}

TEST(View, ReshapesWithoutCopyOrRefuses) {
  ArrayInfo matrix = Contiguous(DType::kFloat32, {4, 6});
  EXPECT_EQ(View().Reshape({2, -1, 3}).Of(matrix)->shape, (Extents{2, 4, 3}));
  EXPECT_EQ(View().Reshape({2, -1, 3}).Of(matrix)->strides, (Extents{48, 12, 4}));
  auto refused = View().Transpose().Reshape({24}).Of(matrix).status();
  EXPECT_EQ(ReasonOf(refused), v1::ERROR_REASON_SHAPE_MISMATCH);
  // Splitting an axis of a transposed array needs no copy.
  EXPECT_EQ(View().Transpose().Reshape({3, 2, 4}).Of(matrix)->strides, (Extents{8, 4, 24}));
  EXPECT_FALSE(View().Reshape({5, 5}).Of(matrix).ok());
  EXPECT_FALSE(View().Reshape({-1, 7}).Of(matrix).ok());
  EXPECT_FALSE(View().Reshape({-1, -1}).Of(matrix).ok());
  EXPECT_FALSE(View().Reshape({-1, 0}).Of(Contiguous(DType::kInt8, {0})).ok());
  EXPECT_EQ(View().Reshape({}).Of(Contiguous(DType::kInt8, {1, 1}))->shape, Extents{});
  EXPECT_EQ(View().Reshape({1, 24, 1}).Of(matrix)->shape, (Extents{1, 24, 1}));
}

TEST(View, BroadcastsAndTransposes) {
  auto info = *View().Broadcast({3, 10}).Of(kTen);
  EXPECT_EQ(info.strides, (Extents{0, 4}));
  EXPECT_FALSE(View().Broadcast({3, 5}).Of(kTen).ok());
  EXPECT_FALSE(View().Broadcast({5}).Of(Contiguous(DType::kInt8, {2, 5})).ok());
  EXPECT_EQ(View().Transpose({2, 0, 1}).Of(Contiguous(DType::kInt8, {2, 3, 4}))->shape,
            (Extents{4, 2, 3}));
  EXPECT_FALSE(View().Transpose({0, 0}).Of(Contiguous(DType::kInt8, {2, 3})).ok());
  EXPECT_FALSE(View().Transpose({0}).Of(Contiguous(DType::kInt8, {2, 3})).ok());
}

}  // namespace
}  // namespace stride::ops
