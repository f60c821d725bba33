// Ufuncs beyond one plain result: two outputs, masks.
#include <cmath>
#include <limits>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class UfuncTest : public DeviceTest {
 protected:
  static v1::Operation TwoOutputs(const std::string& function, int num_inputs) {
    v1::Operation operation = UfuncOf(function, num_inputs);
    operation.add_outputs()->set_handle(101);
    return operation;
  }
  static HostArray Of(DType dtype, const std::vector<double>& values) {
    return Make(dtype, {static_cast<int64_t>(values.size())},
                [&](int64_t i) { return Value(values[static_cast<size_t>(i)]); });
  }
  // Bitwise equal, except for NaN's payload.
  static void ExpectSame(double got, double expected, const std::string& what) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << what << " gave " << got;
      return;
    }
    EXPECT_EQ(got, expected) << what;
    EXPECT_EQ(std::signbit(got), std::signbit(expected)) << what << ": sign of zero";
  }
};

TEST_F(UfuncTest, FrexpSplitsFloats) {
  const std::vector<double> values = {0.0,  -0.0,  1.0,  -1.0, 0.5, 3.75,     -1024, 1e30,
                                      kInf, -kInf, kNan, 7.0,  -6,  0x1p-126, 0.1f,  0x1p127};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    std::vector<double> all = values;
    all.push_back(dtype == DType::kFloat32 ? 0x1p-149 : 0x1p-1074);
    all.push_back(dtype == DType::kFloat32 ? 0x1.8p-140 : -0x1.8p-1060);
    auto parts = harness().ComputeAll(TwoOutputs("frexp", 1), {harness().Put(Of(dtype, all))});
    ASSERT_TRUE(parts.ok()) << parts.status();
    const HostArray mantissa = harness().Get((*parts)[0]), exponent = harness().Get((*parts)[1]);
    ASSERT_EQ(exponent.info.dtype, DType::kInt32);
    for (size_t i = 0; i < all.size(); ++i) {
      int e = 0;
      const double x = dtype == DType::kFloat32 ? static_cast<float>(all[i]) : all[i];
      const double m = std::frexp(x, &e);
      ExpectSame(mantissa.At(i).real(), m, "mantissa of " + std::to_string(x));
      EXPECT_EQ(exponent.At(i).real(), std::isfinite(x) ? e : 0) << "exponent of " << x;
    }
  }
  auto half = harness().ComputeAll(TwoOutputs("frexp", 1),
                                   {harness().Put(Of(DType::kFloat16, {6.0, -0.375}))});
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(harness().Get((*half)[0]).Values(), (std::vector<Value>{0.75, -0.75}));
  EXPECT_EQ(harness().Get((*half)[1]).Values(), (std::vector<Value>{3, -1}));
}

TEST_F(UfuncTest, ModfSplitsIntegerAndFraction) {
  const std::vector<double> values = {0.0,   -0.0, 1.0,   -1.0, 0.5,       -0.5,   3.75,
                                      -2.25, kInf, -kInf, kNan, 1048576.5, -1e-40, 1e30};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    auto parts = harness().ComputeAll(TwoOutputs("modf", 1), {harness().Put(Of(dtype, values))});
    ASSERT_TRUE(parts.ok()) << parts.status();
    const HostArray fraction = harness().Get((*parts)[0]), whole = harness().Get((*parts)[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = dtype == DType::kFloat32 ? static_cast<float>(values[i]) : values[i];
      double w = 0;
      const double f = std::modf(x, &w);
      ExpectSame(fraction.At(i).real(), f, "fraction of " + std::to_string(x));
      ExpectSame(whole.At(i).real(), w, "whole part of " + std::to_string(x));
    }
  }
}

TEST_F(UfuncTest, DivmodIsFloorDivideAndRemainder) {
  const std::vector<double> left = {7, -7, 7, -7, 0, 5, 100, -128},
                            right = {3, 3, -3, -3, 4, 0, 7, -1};
  auto parts = harness().ComputeAll(
      TwoOutputs("divmod", 2),
      {harness().Put(Of(DType::kInt8, left)), harness().Put(Of(DType::kInt8, right))});
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(harness().Get((*parts)[0]).Values(),
            (std::vector<Value>{2, -3, -3, 2, 0, 0, 14, -128}));
  EXPECT_EQ(harness().Get((*parts)[1]).Values(), (std::vector<Value>{1, 2, -2, -1, 0, 0, 2, 0}));
  parts = harness().ComputeAll(TwoOutputs("divmod", 2),
                               {harness().Put(Of(DType::kFloat64, {7.5, -7.5, 1, kInf})),
                                harness().Put(Of(DType::kFloat64, {2, 2, 0, 2}))});
  ASSERT_TRUE(parts.ok()) << parts.status();
  const HostArray quotient = harness().Get((*parts)[0]), rest = harness().Get((*parts)[1]);
  ExpectSame(quotient.At(0).real(), 3, "7.5 // 2");
  ExpectSame(rest.At(0).real(), 1.5, "7.5 % 2");
  ExpectSame(quotient.At(1).real(), -4, "-7.5 // 2");
  ExpectSame(rest.At(1).real(), 0.5, "-7.5 % 2");
  ExpectSame(quotient.At(2).real(), kInf, "1 // 0");
  ExpectSame(rest.At(2).real(), kNan, "1 % 0");
  ExpectSame(rest.At(3).real(), kNan, "inf % 2");
}

TEST_F(UfuncTest, TwoOutputsOfStridedInputIntoViews) {
  const HostArray input =
      Transposed(Make(DType::kFloat64, {3, 5}, [](int64_t i) { return i * 0.75 - 4; }));
  DeviceArray first = harness().Put(Make(DType::kFloat32, {5, 6}, [](int64_t) { return -1.0; }));
  const DeviceArray whole = first;
  first.info.shape = {5, 3};
  first.info.strides = {24, 8};
  auto parts =
      harness().ComputeAll(TwoOutputs("modf", 1), {harness().Put(input)}, {&first, nullptr});
  ASSERT_TRUE(parts.ok()) << parts.status();
  const HostArray fraction = harness().Get(whole), rest = harness().Get((*parts)[1]);
  for (int64_t i = 0; i < 15; ++i) {
    double w = 0;
    const double f = std::modf(input.At(i).real(), &w);
    ASSERT_EQ(fraction.At(2 * i).real(), f) << i;
    ASSERT_EQ(fraction.At(2 * i + 1).real(), -1) << i;
    ASSERT_EQ(rest.At(i).real(), w) << i;
  }
}

TEST_F(UfuncTest, WhereKeepsUnmaskedElements) {
  v1::Operation operation = UfuncOf("add", 2);
  operation.mutable_ufunc()->mutable_where()->set_handle(50);
  for (DType dtype : {DType::kFloat32, DType::kInt16, DType::kFloat16, DType::kComplex128}) {
    const HostArray a = Make(dtype, {4, 6}, [](int64_t i) { return Value(i); });
    const HostArray b = Make(dtype, {6}, [](int64_t i) { return Value(10 * i); });
    const HostArray mask = Make(DType::kBool, {4, 1}, [](int64_t i) { return Value(i % 2); });
    DeviceArray target = harness().Put(Make(dtype, {4, 6}, [](int64_t i) { return Value(-i); }));
    auto sum = harness().Compute(
        operation, {harness().Put(a), harness().Put(b), harness().Put(mask)}, &target);
    ASSERT_TRUE(sum.ok()) << sum.status();
    auto fresh =
        harness().Compute(operation, {harness().Put(a), harness().Put(b), harness().Put(mask)});
    ASSERT_TRUE(fresh.ok()) << fresh.status();
    const HostArray got = harness().Get(*sum), made = harness().Get(*fresh);
    for (int64_t i = 0; i < 24; ++i) {
      const bool on = i / 6 % 2 != 0;
      const Value expected = a.At(i) + b.At(i % 6);
      ASSERT_EQ(got.At(i), on ? expected : Value(-i)) << Name(dtype) << i;
      ASSERT_EQ(made.At(i), on ? expected : Value(0)) << Name(dtype) << i;
    }
  }
}

}  // namespace
}  // namespace stride::conformance
