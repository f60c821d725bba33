// Interpolation between sample points, and correlation of two rows.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class SignalTest : public DeviceTest {
 protected:
  HostArray Interpolated(
      const HostArray& input, const HostArray& known, const HostArray& values,
      const std::function<void(v1::Interpolate*)>& change = [](auto*) {}) {
    v1::Operation operation;
    operation.mutable_interpolate()->mutable_input()->set_handle(1);
    operation.mutable_interpolate()->mutable_known()->set_handle(2);
    operation.mutable_interpolate()->mutable_values()->set_handle(3);
    change(operation.mutable_interpolate());
    operation.add_outputs()->set_handle(100);
    auto result = harness().Compute(
        operation, {harness().Put(input), harness().Put(known), harness().Put(values)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result) : HostArray();
  }

  HostArray Correlated(const HostArray& left, const HostArray& right, v1::Correlate::Mode mode,
                       bool convolve) {
    v1::Operation operation;
    operation.mutable_correlate()->mutable_left()->set_handle(1);
    operation.mutable_correlate()->mutable_right()->set_handle(2);
    operation.mutable_correlate()->set_mode(mode);
    operation.mutable_correlate()->set_convolve(convolve);
    operation.add_outputs()->set_handle(100);
    auto result = harness().Compute(operation, {harness().Put(left), harness().Put(right)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result) : HostArray();
  }
};

HostArray Row(DType dtype, const std::vector<Value>& values) {
  return Make(dtype, {static_cast<int64_t>(values.size())}, [&](int64_t i) { return values[i]; });
}

TEST_F(SignalTest, InterpolatesLinearly) {
  for (DType dtype : {DType::kInt16, DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    const HostArray known = Make(dtype, {60}, [](int64_t i) { return Value(4 * i); });
    const HostArray values = Make(dtype, {60}, [](int64_t i) { return Value(i * i % 64); });
    const HostArray input =
        Transposed(Make(DType::kFloat64, {50, 20}, [](int64_t i) { return Value(i * 0.25 - 5); }));
    const HostArray got = Interpolated(input, known, values);
    ASSERT_EQ(got.info.dtype, DType::kFloat64);
    ASSERT_EQ(got.info.shape, input.info.shape);
    for (int64_t i = 0; i < 1000; ++i) {
      const double x = input.At(i).real();
      const auto low = static_cast<int64_t>(std::clamp(std::floor(x / 4), 0.0, 59.0));
      const int64_t high = std::min<int64_t>(low + 1, 59);
      const double share = std::clamp(x / 4 - static_cast<double>(low), 0.0, 1.0);
      const double y0 = values.At(low).real(), y1 = values.At(high).real();
      ASSERT_DOUBLE_EQ(got.At(i).real(), y0 + (y1 - y0) * share) << x;
    }
  }
}

TEST_F(SignalTest, EndsNanAndInfinitiesFollowNumPy) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  const HostArray known = Row(DType::kFloat64, {1, 2, 3}), values = Row(DType::kFloat64, {5, 7, 1});
  const HostArray input = Row(DType::kFloat64, {0, 1, 3, 4, nan, -inf, inf, 2.5});
  auto numbers = [](const HostArray& array) {
    std::vector<double> all;
    for (Value value : array.Values()) all.push_back(value.real());
    return all;
  };
  std::vector<double> got = numbers(Interpolated(input, known, values));
  EXPECT_TRUE(std::isnan(got[4]));
  got[4] = 0;
  EXPECT_EQ(got, (std::vector<double>{5, 5, 1, 1, 0, 5, 1, 4}));
  got = numbers(Interpolated(input, known, values, [](v1::Interpolate* interpolate) {
    interpolate->mutable_left()->set_float_value(-1);
    interpolate->mutable_right()->set_int_value(9);
  }));
  got[4] = 0;
  EXPECT_EQ(got, (std::vector<double>{-1, 5, 1, 9, 0, -1, 9, 4}));
  // One sample point; equal infinite values; a sample point itself next to an infinite one.
  EXPECT_EQ(
      numbers(Interpolated(
          Row(DType::kFloat64, {0, 2, 3}), Row(DType::kFloat64, {2}), Row(DType::kFloat64, {8}),
          [](v1::Interpolate* interpolate) { interpolate->mutable_left()->set_float_value(-1); })),
      (std::vector<double>{-1, 8, 8}));
  EXPECT_EQ(numbers(Interpolated(Row(DType::kFloat64, {1.5, 2, 2.5}), known,
                                 Row(DType::kFloat64, {inf, inf, 4}))),
            (std::vector<double>{inf, inf, inf}));
}

TEST_F(SignalTest, InterpolatesComplexValuesByTheirParts) {
  const HostArray got =
      Interpolated(Row(DType::kFloat32, {0, 1.5, 9}), Row(DType::kInt32, {1, 2, 4}),
                   Row(DType::kComplex64, {Value(2, 8), Value(4, -8), Value(0, 1)}),
                   [](v1::Interpolate* interpolate) {
                     interpolate->mutable_right()->mutable_complex_value()->set_real(5);
                     interpolate->mutable_right()->mutable_complex_value()->set_imaginary(-6);
                   });
  EXPECT_EQ(got.info.dtype, DType::kComplex128);
  EXPECT_EQ(got.Values(), (std::vector<Value>{Value(2, 8), Value(3, 0), Value(5, -6)}));
}

// The definition, from all pairs.
std::vector<Value> Expected(const HostArray& left, const HostArray& right, v1::Correlate::Mode mode,
                            bool convolve) {
  auto a = left.Values(), v = right.Values();
  if (convolve && v.size() > a.size()) std::swap(a, v);
  if (convolve) std::reverse(v.begin(), v.end());
  const auto n = static_cast<int64_t>(a.size()), m = static_cast<int64_t>(v.size());
  std::vector<Value> full;
  for (int64_t k = 1 - m; k < n; ++k) {
    Value sum = 0;
    for (int64_t j = 0; j < m; ++j) {
      if (k + j < 0 || k + j >= n) continue;
      sum += a[k + j] * (convolve ? v[j] : std::conj(v[j]));
    }
    full.push_back(sum);
  }
  const int64_t shorter = std::min(n, m), longer = std::max(n, m);
  if (mode == v1::Correlate::MODE_FULL) return full;
  if (mode == v1::Correlate::MODE_SAME) {
    // NumPy reverses the result of swapped rows.
    const int64_t begin = n >= m ? m - 1 - m / 2 : n / 2;
    return {full.begin() + begin, full.begin() + begin + longer};
  }
  return {full.begin() + shorter - 1, full.begin() + longer};
}

constexpr v1::Correlate::Mode kModes[] = {v1::Correlate::MODE_VALID, v1::Correlate::MODE_SAME,
                                          v1::Correlate::MODE_FULL};

TEST_F(SignalTest, CorrelatesRowsOfEveryLength) {
  for (auto [n, m] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {5, 1}, {1, 5}, {7, 4}, {4, 7}, {8, 8}, {33, 32}, {1000, 70}, {70, 1001}}) {
    const HostArray left = Make(DType::kInt32, {n}, [](int64_t i) { return i * 37 % 101 - 50; });
    const HostArray right = Make(DType::kInt32, {m}, [](int64_t i) { return i * 53 % 97 - 40; });
    for (v1::Correlate::Mode mode : kModes) {
      for (bool convolve : {false, true}) {
        ASSERT_EQ(Correlated(left, right, mode, convolve).Values(),
                  Expected(left, right, mode, convolve))
            << n << " with " << m << ", mode " << mode << (convolve ? ", convolved" : "");
        ASSERT_EQ(Correlated(EverySecond(left, 0), Reversed(right, 0), mode, convolve).Values(),
                  Expected(EverySecond(left, 0), Reversed(right, 0), mode, convolve));
      }
    }
    harness().Reset();
  }
}

TEST_F(SignalTest, CorrelatesEveryDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    auto make = [&](int64_t count, int64_t step) {
      return Make(dtype, {count}, [&](int64_t i) {
        if (IsBool(dtype)) return Value(i * step % 3 == 0);
        Value v = static_cast<double>(i * step % 4);
        if (IsComplex(dtype)) v += Value(0, static_cast<double>(i * step % 3) - 1);
        return v;
      });
    };
    const HostArray left = make(50, 7), right = make(9, 5);
    for (bool convolve : {false, true}) {
      const HostArray got = Correlated(left, right, v1::Correlate::MODE_FULL, convolve);
      ASSERT_EQ(got.info.dtype, dtype);
      auto expected = Expected(left, right, v1::Correlate::MODE_FULL, convolve);
      if (IsBool(dtype)) {
        for (Value& value : expected) value = value != 0.0;
      }
      ASSERT_EQ(got.Values(), expected) << Name(dtype);
    }
  }
  EXPECT_EQ(Correlated(Row(DType::kInt8, {1, 2}), Row(DType::kFloat32, {0.5}),
                       v1::Correlate::MODE_VALID, false)
                .info.dtype,
            DType::kFloat32);
}

// Elements outside the overlap do not contribute, whatever their values.
TEST_F(SignalTest, InfinitiesStayWithinTheirOverlap) {
  const double inf = HUGE_VAL;
  const HostArray left =
      Make(DType::kFloat64, {100}, [&](int64_t i) { return i == 0 ? inf : 1.0; });
  const HostArray right = Row(DType::kFloat64, {0.5, 1, 2});
  const auto got = Correlated(left, right, v1::Correlate::MODE_FULL, false).Values();
  for (size_t i = 0; i < got.size(); ++i) {
    if (i < 3) {
      EXPECT_EQ(got[i].real(), inf) << i;
    } else {
      EXPECT_TRUE(std::isfinite(got[i].real())) << i;
    }
  }
}

}  // namespace
}  // namespace stride::conformance
