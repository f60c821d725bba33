#include <cmath>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class ReduceTest : public DeviceTest {
 protected:
  DeviceArray Reduce(v1::Reduction::Function function, std::vector<int32_t> axes,
                     const HostArray& input) {
    auto result = harness().Compute(ReductionOf(function, std::move(axes)), {harness().Put(input)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : DeviceArray();
  }
  static HostArray Counting(DType dtype, std::vector<int64_t> shape) {
    return Make(dtype, std::move(shape), [](int64_t i) { return Value(i * 37 % 101 - 50); });
  }
};

TEST_F(ReduceTest, SumsEveryLength) {
  for (int64_t n : {0, 1, 2, 31, 33, 1000, 4097, 100000, 3000001}) {
    const HostArray input = Counting(DType::kInt32, {n});
    double expected = 0;
    for (Value value : input.Values()) expected += value.real();
    const HostArray got = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {}, input));
    ASSERT_EQ(got.info.dtype, DType::kInt64);
    ASSERT_EQ(got.At(0).real(), expected) << n << " elements";
    harness().Reset();
  }
}

TEST_F(ReduceTest, SumsRowsAndColumns) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{7, 1000}, {1000, 7}, {300, 513}, {1, 4000}, {4000, 1}}) {
    const HostArray input = Counting(DType::kFloat64, {rows, columns});
    const HostArray by_row = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {1}, input));
    const HostArray by_column = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {0}, input));
    for (int64_t r = 0; r < rows; ++r) {
      double expected = 0;
      for (int64_t c = 0; c < columns; ++c) expected += input.At(r * columns + c).real();
      ASSERT_EQ(by_row.At(r).real(), expected) << rows << "x" << columns << " row " << r;
    }
    for (int64_t c = 0; c < columns; ++c) {
      double expected = 0;
      for (int64_t r = 0; r < rows; ++r) expected += input.At(r * columns + c).real();
      ASSERT_EQ(by_column.At(c).real(), expected) << rows << "x" << columns << " column " << c;
    }
    harness().Reset();
  }
}

TEST_F(ReduceTest, ReducesViews) {
  const HostArray input = Transposed(Reversed(Counting(DType::kFloat64, {4, 30, 20}), 1));
  const HostArray got = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {1}, input));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t k = 0; k < 30; ++k) {
      double expected = 0;
      for (int64_t j = 0; j < 20; ++j) expected += input.At((i * 20 + j) * 30 + k).real();
      ASSERT_EQ(got.At(i * 30 + k).real(), expected) << i << ", " << k;
    }
  }
}

TEST_F(ReduceTest, FindsExtremesAndWhereTheyAre) {
  HostArray input = Make(DType::kFloat32, {50000}, [](int64_t i) { return Value(i % 1000); });
  Store(DType::kFloat32, 5000, input.buffer.data() + 4 * 31234);
  Store(DType::kFloat32, 5000, input.buffer.data() + 4 * 41234);
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_MAX, {}, input)).At(0), Value(5000));
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_MIN, {}, input)).At(0), Value(0));
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_ARGMAX, {}, input)).At(0), Value(31234));
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_ARGMIN, {}, input)).At(0), Value(0));
}

TEST_F(ReduceTest, MeanAndNormFinishTheirSums) {
  const HostArray input = Make(DType::kFloat64, {40000}, [](int64_t i) { return Value(i % 5); });
  EXPECT_DOUBLE_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_MEAN, {}, input)).At(0).real(),
                   2.0);
  EXPECT_DOUBLE_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_NORM, {}, input)).At(0).real(),
                   std::sqrt(8000.0 * 30));
}

TEST_F(ReduceTest, RepeatsToTheBit) {
  const HostArray input =
      Make(DType::kFloat32, {1000000}, [](int64_t i) { return Value(1.0f / (i + 1)); });
  const DeviceArray placed = harness().Put(input);
  auto first = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {placed});
  ASSERT_TRUE(first.ok()) << first.status();
  const Value expected = harness().Get(*first).At(0);
  EXPECT_NEAR(expected.real(), 14.392727, 1e-4);
  for (int i = 0; i < 5; ++i) {
    auto again = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {placed});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(harness().Get(*again).At(0), expected);
  }
}

TEST_F(ReduceTest, OperandsOutsideTheirArenaAreRefused) {
  auto array = harness().Put(Counting(DType::kFloat32, {1000}));
  DeviceArray output;
  auto task =
      harness().Prepare(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {array}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_reduce()->mutable_inputs(0)->set_offset(Harness::kArenaBytes - 3996);
  EXPECT_EQ(harness().Run(bad).code(), absl::StatusCode::kInvalidArgument);
  bad = *task;
  bad.mutable_reduce()->mutable_output()->set_offset(Harness::kArenaBytes);
  EXPECT_EQ(harness().Run(bad).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(harness().Run(*task).ok());
}

}  // namespace
}  // namespace stride::conformance
