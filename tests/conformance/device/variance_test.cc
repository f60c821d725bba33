// Variances and standard deviations compared with two passes in long double. Covers a large mean,
// an outlier, and empty sets.
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

using R = v1::Reduction;

// The variance of `values`, with `correction` subtracted from the degrees of freedom.
double Variance(const std::vector<Value>& values, double correction = 0) {
  std::complex<long double> sum = 0;
  for (Value value : values) sum += std::complex<long double>(value);
  const auto mean = sum / static_cast<long double>(values.size());
  long double squares = 0;
  for (Value value : values) squares += std::norm(std::complex<long double>(value) - mean);
  const auto left = std::max<long double>(static_cast<long double>(values.size()) - correction, 0);
  return static_cast<double>(squares / left);
}

// One unit in the last place of 1 in a result of this type.
double UnitOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return std::ldexp(1, -10);
    case DType::kBFloat16:
      return std::ldexp(1, -7);
    case DType::kFloat32:
    case DType::kComplex64:
      return std::ldexp(1, -23);
    default:
      return std::ldexp(1, -52);
  }
}

// Numbers around `offset`, up to `spread` from it.
HostArray Around(DType dtype, std::vector<int64_t> shape, double offset, double spread) {
  return Make(dtype, std::move(shape), [=](int64_t i) {
    const double real =
        offset + spread * static_cast<double>((i * 7919 + i / 7) % 1009 - 504) / 504;
    if (IsBool(dtype)) return Value(i % 7 % 3 == 1);
    if (IsInteger(dtype)) return Value(std::round(real));
    return IsComplex(dtype) ? Value(real, offset + static_cast<double>(i % 17) / 32) : Value(real);
  });
}

struct Case {
  HostArray input;
  std::vector<int32_t> axes;  // ascending; empty: all
  double correction = 0;
  bool skip_nan = false;
  std::optional<HostArray> mask;

  std::string Text() const {
    std::string text(Name(input.info.dtype));
    for (int64_t extent : input.info.shape) absl::StrAppend(&text, " ", extent);
    for (int32_t axis : axes) absl::StrAppend(&text, " axis ", axis);
    return text;
  }
};

class VarianceTest : public DeviceTest {
 protected:
  absl::StatusOr<HostArray> Compute(R::Function function, const Case& one) {
    v1::Operation operation = ReductionOf(function, one.axes);
    operation.mutable_reduction()->set_correction(one.correction);
    operation.mutable_reduction()->set_skip_nan(one.skip_nan);
    std::vector<DeviceArray> inputs = {harness().Put(one.input)};
    if (one.mask) {
      operation.mutable_reduction()->mutable_where()->set_handle(2);
      inputs.push_back(harness().Put(*one.mask));
    }
    auto result = harness().Compute(operation, inputs);
    if (!result.ok()) return result.status();
    return harness().Get(*result);
  }

  // The elements of each result.
  static std::vector<std::vector<Value>> Groups(const Case& one) {
    const std::vector<int64_t>& shape = one.input.info.shape;
    std::vector<bool> reduced(shape.size(), one.axes.empty());
    for (int32_t axis : one.axes) reduced[static_cast<size_t>(axis)] = true;
    int64_t kept_count = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      kept_count *= reduced[axis] ? 1 : shape[axis];
    std::vector<std::vector<Value>> groups(static_cast<size_t>(kept_count));
    for (int64_t i = 0; i < one.input.info.num_elements(); ++i) {
      int64_t rest = i, kept = 0, step = 1;
      for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
        if (reduced[axis]) continue;
        kept += rest % shape[axis] * step;
        step *= shape[axis];
      }
      const Value value = one.input.At(i);
      if (one.mask && one.mask->At(i) == Value(0)) continue;
      if (one.skip_nan && (std::isnan(value.real()) || std::isnan(value.imag()))) continue;
      groups[static_cast<size_t>(kept)].push_back(value);
    }
    return groups;
  }

  // Within `units` of the last place.
  void Check(const Case& one, double units) {
    const auto groups = Groups(one);
    for (R::Function function : {R::FUNCTION_VAR, R::FUNCTION_STD}) {
      auto result = Compute(function, one);
      ASSERT_TRUE(result.ok()) << result.status() << " " << one.Text();
      ASSERT_EQ(result->info.num_elements(), static_cast<int64_t>(groups.size()));
      for (size_t i = 0; i < groups.size(); ++i) {
        double expected = Variance(groups[i], one.correction);
        if (function == R::FUNCTION_STD) expected = std::sqrt(expected);
        const double got = result->At(static_cast<int64_t>(i)).real();
        if (std::isnan(expected) && std::isnan(got)) continue;
        ASSERT_LE(std::abs(got - expected), units * UnitOf(result->info.dtype) * expected)
            << got << " instead of " << expected << " at " << i << ": " << one.Text();
      }
    }
    harness().Reset();
  }
};

TEST_F(VarianceTest, EveryShapeAndAxisWithALargeMean) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{1},
                                                                               {2},
                                                                               {7},
                                                                               {33},
                                                                               {600},
                                                                               {4097},
                                                                               {300001},
                                                                               {7, 1000},
                                                                               {1000, 7},
                                                                               {300, 513},
                                                                               {2, 70000},
                                                                               {70000, 2},
                                                                               {5000, 40},
                                                                               {4, 30, 20}}) {
      std::vector<std::vector<int32_t>> all = {{}, {0}};
      if (shape.size() > 1) all.push_back({1});
      if (shape.size() > 2) all.insert(all.end(), {{2}, {0, 2}, {0, 1}, {1, 2}});
      for (const std::vector<int32_t>& axes : all)
        Check({.input = Around(dtype, shape, 3000, 1), .axes = axes}, 16);
    }
  }
}

TEST_F(VarianceTest, EveryDType) {
  for (DType dtype :
       {DType::kBool, DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64, DType::kUInt64,
        DType::kFloat16, DType::kBFloat16, DType::kComplex64, DType::kComplex128}) {
    for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}}) {
      Check({.input = Around(dtype, {90, 70}, 50, 40), .axes = axes}, 16);
      Check({.input = Transposed(Around(dtype, {70, 90}, 50, 40)), .axes = axes}, 16);
    }
  }
}

// The sum of squares minus the shifted square of the sum would lose all digits.
TEST_F(VarianceTest, OutlierKeepsAccuracy) {
  for (int64_t place : {0, 1, 777, 199999}) {
    const auto far = [&](int64_t i) {
      return Value(i == place ? 1e6 : 100 + (i * 37 % 101) / 50.0);
    };
    Check({.input = Make(DType::kFloat32, {200000}, far)}, 64);
    Check({.input = Make(DType::kFloat32, {200000, 1}, far), .axes = {0}}, 64);
    Check({.input = Make(DType::kFloat32, {10000, 20}, far), .axes = {0, 1}}, 64);
  }
}

TEST_F(VarianceTest, EqualElementsHaveZeroVariance) {
  for (double value : {0.1, 1e7, -3e30}) {
    for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}}) {
      const HostArray input =
          Make(DType::kFloat32, {300, 411}, [&](int64_t) { return Value(value); });
      Check({.input = input, .axes = axes}, 0);
    }
  }
}

TEST_F(VarianceTest, SubtractsTheCorrection) {
  for (double correction : {1.0, 0.5, 2.0, -3.0})
    Check({.input = Around(DType::kFloat64, {30, 50}, 5, 2), .axes = {1}, .correction = correction},
          16);
  const HostArray three = Around(DType::kFloat32, {2, 3}, 5, 2);
  for (double correction : {3.0, 4.0}) {
    auto none = Compute(R::FUNCTION_VAR, {.input = three, .axes = {1}, .correction = correction});
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_TRUE(std::isinf(none->At(0).real()));
  }
  auto single =
      Compute(R::FUNCTION_STD, {.input = Around(DType::kFloat32, {1}, 5, 2), .correction = 1});
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_TRUE(std::isnan(single->At(0).real()));
}

TEST_F(VarianceTest, EmptyAndNonFinite) {
  auto empty =
      Compute(R::FUNCTION_VAR, {.input = Make(DType::kFloat32, {3, 0}, nullptr), .axes = {1}});
  ASSERT_TRUE(empty.ok()) << empty.status();
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(empty->At(i).real()));
  for (double odd : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const HostArray input = Make(DType::kFloat64, {3, 5000},
                                 [&](int64_t i) { return Value(i == 7001 ? odd : i % 10); });
    for (int32_t axis : {0, 1}) {
      auto result = Compute(R::FUNCTION_VAR, {.input = input, .axes = {axis}});
      ASSERT_TRUE(result.ok()) << result.status();
      for (int64_t i = 0; i < result->info.num_elements(); ++i)
        ASSERT_EQ(std::isnan(result->At(i).real()), i == (axis == 1 ? 1 : 2001)) << i;
    }
  }
}

TEST_F(VarianceTest, MaskedElementsDoNotCount) {
  for (DType dtype : {DType::kFloat32, DType::kComplex128}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{90, 70}, {3, 50000}, {20000, 20}}) {
      const HostArray input = Around(dtype, shape, 1000, 2);
      const HostArray mask =
          Make(DType::kBool, shape, [](int64_t i) { return Value(i % 5 % 3 == 1); });
      for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}})
        Check({.input = input, .axes = axes, .correction = 1, .mask = mask}, 32);
    }
  }
}

TEST_F(VarianceTest, SkipsNan) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{90, 70}, {3, 50000}, {20000, 20}}) {
      const HostArray numbers = Around(dtype, shape, 100, 2);
      const HostArray input = Make(
          dtype, shape, [&](int64_t i) { return i % 7 < 3 ? Value(std::nan("")) : numbers.At(i); });
      for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}})
        Check({.input = input, .axes = axes, .skip_nan = true}, 32);
    }
  }
  // No degrees of freedom.
  const HostArray one = Make(DType::kFloat32, {2, 3}, [](int64_t i) {
    return i == 0 || i == 3 || i == 4 ? Value(i) : Value(std::nan(""));
  });
  auto result =
      Compute(R::FUNCTION_VAR, {.input = one, .axes = {1}, .correction = 1, .skip_nan = true});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::isnan(result->At(0).real()));
  EXPECT_EQ(result->At(1), Value(0.5));
}

TEST_F(VarianceTest, RepeatedRunsAreBitIdentical) {
  for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}}) {
    const Case one{.input = Around(DType::kFloat32, {700, 900}, 10, 3), .axes = axes};
    auto first = Compute(R::FUNCTION_VAR, one);
    ASSERT_TRUE(first.ok()) << first.status();
    for (int again = 0; again < 5; ++again) {
      auto other = Compute(R::FUNCTION_VAR, one);
      ASSERT_TRUE(other.ok()) << other.status();
      ASSERT_EQ(other->buffer, first->buffer);
    }
  }
}

}  // namespace
}  // namespace stride::conformance
