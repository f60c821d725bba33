#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/conformance/device/harness.h"
#include "tests/support/plan_helpers.h"

namespace stride::conformance {
namespace {

class ElementwiseTest : public DeviceTest {
 protected:
  // The sum of two arrays, compared with the host's sum element by element. Values are small
  // integers: exact in every dtype.
  void ExpectSum(const HostArray& left, const HostArray& right) {
    auto sum = harness().Compute(UfuncOf("add", 2), {harness().Put(left), harness().Put(right)});
    ASSERT_TRUE(sum.ok()) << sum.status();
    const HostArray got = harness().Get(*sum);
    const auto a = left.Values(), b = right.Values();
    ASSERT_EQ(got.info.num_elements(), static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(got.At(static_cast<int64_t>(i)), a[i] + b[i])
          << Name(left.info.dtype) << " element " << i << ": " << a[i] << " + " << b[i];
    }
  }
  static HostArray Counting(DType dtype, std::vector<int64_t> shape, int first = 0) {
    return Make(dtype, std::move(shape), [=](int64_t i) { return Value((i + first) % 50); });
  }
};

TEST_F(ElementwiseTest, AddsEveryDType) {
  for (int number = static_cast<int>(DType::kInt8); number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    ExpectSum(Counting(dtype, {1000}), Counting(dtype, {1000}, 3));
  }
}

TEST_F(ElementwiseTest, AddsEveryLengthAroundPowersOfTwo) {
  for (int64_t n : {1, 2, 3, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 65535, 65537, 1000003}) {
    ExpectSum(Counting(DType::kFloat32, {n}), Counting(DType::kFloat32, {n}, 1));
    harness().Reset();
  }
}

TEST_F(ElementwiseTest, AcceptsAnyStrides) {
  const HostArray plain = Counting(DType::kInt32, {6, 10});
  ExpectSum(plain, Reversed(Counting(DType::kInt32, {6, 10}, 7), 0));
  ExpectSum(plain, Reversed(Counting(DType::kInt32, {6, 10}, 7), 1));
  ExpectSum(plain, Transposed(Counting(DType::kInt32, {10, 6}, 7)));
  ExpectSum(plain, EverySecond(Counting(DType::kInt32, {6, 20}, 7), 1));
  ExpectSum(plain, Repeated(Counting(DType::kInt32, {10}, 7), {6, 10}));
  ExpectSum(plain, Repeated(Counting(DType::kInt32, {6, 1}, 7), {6, 10}));
  ExpectSum(Transposed(Counting(DType::kFloat64, {3, 4, 5})),
            EverySecond(Reversed(Counting(DType::kFloat64, {3, 5, 8}, 1), 2), 2));
}

// A GPU's threads process several consecutive elements, across the ends of axes.
TEST_F(ElementwiseTest, AcceptsStridesAlongAxesOfAnyExtent) {
  for (DType dtype : {DType::kInt8, DType::kFloat16, DType::kInt32, DType::kFloat64}) {
    for (int64_t last : {1, 2, 3, 5, 7, 13}) {
      for (int64_t middle : {1, 3, 6}) {
        ExpectSum(Repeated(Counting(dtype, {11, 1, last}), {11, middle, last}),
                  Repeated(Counting(dtype, {middle, last}, 3), {11, middle, last}));
        ExpectSum(Counting(dtype, {11, middle, last}),
                  Reversed(Counting(dtype, {11, middle, last}, 7), 2));
        ExpectSum(EverySecond(Counting(dtype, {5, middle, 2 * last}, 2), 2),
                  Repeated(Counting(dtype, {middle, 1}, 9), {5, middle, last}));
      }
    }
    harness().Reset();
  }
  ExpectSum(Repeated(Counting(DType::kFloat32, {700, 1, 3}), {700, 300, 3}),
            Repeated(Counting(DType::kFloat32, {300, 3}, 5), {700, 300, 3}));
}

// If both are needed, they are computed together.
TEST_F(ElementwiseTest, SinCosIsBitIdenticalToSinAndCos) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    // Over the whole range: fractions of a period, and arguments whose reduction needs many bits of
    // pi.
    const DeviceArray x = harness().Put(Make(dtype, {20000}, [](int64_t i) {
      return Value((i % 2 == 0 ? 1 : -1) * (0.1 + 0.013 * static_cast<double>(i)) *
                   std::pow(10.0, static_cast<double>(i % 23 - 2)));
    }));
    auto alone = [&](const char* function) {
      auto result = harness().Compute(UfuncOf(function, 1), {x});
      EXPECT_TRUE(result.ok()) << result.status();
      return harness().Get(*result);
    };
    auto together = [&](const std::string& text) {
      auto result = harness().Compute(ops::testing::ExpressionOf(text, {"x"}), {x});
      EXPECT_TRUE(result.ok()) << result.status();
      return harness().Get(*result);
    };
    const HostArray sine = alone("sin"), cosine = alone("cos");
    const HostArray other_sine = together("sin(x) + 0 * cos(x)"),
                    other_cosine = together("cos(x) + 0 * sin(x)");
    for (int64_t i = 0; i < 20000; ++i) {
      ASSERT_EQ(other_sine.At(i), sine.At(i)) << Name(dtype) << " " << i;
      ASSERT_EQ(other_cosine.At(i), cosine.At(i)) << Name(dtype) << " " << i;
    }
    harness().Reset();
  }
}

TEST_F(ElementwiseTest, WritesIntoAView) {
  const HostArray left = Counting(DType::kFloat32, {5, 7}),
                  right = Counting(DType::kFloat32, {5, 7}, 2);
  DeviceArray target = harness().Put(Make(DType::kFloat32, {5, 14}, [](int64_t) { return -1.0; }));
  const DeviceArray whole = target;
  target.info.shape = {5, 7};
  target.info.strides = {56, 8};
  auto sum =
      harness().Compute(UfuncOf("add", 2), {harness().Put(left), harness().Put(right)}, &target);
  ASSERT_TRUE(sum.ok()) << sum.status();
  const HostArray got = harness().Get(whole);
  for (int64_t i = 0; i < 70; ++i) {
    const Value expected = i % 2 != 0 ? Value(-1) : left.At(i / 2) + right.At(i / 2);
    ASSERT_EQ(got.At(i), expected) << "element " << i;
  }
}

TEST_F(ElementwiseTest, EmptyArraysAreAccepted) {
  ExpectSum(Counting(DType::kFloat32, {0}), Counting(DType::kFloat32, {0}));
  ExpectSum(Counting(DType::kFloat32, {3, 0, 2}), Counting(DType::kFloat32, {3, 0, 2}));
}

TEST_F(ElementwiseTest, KeepsDenormalsAndExactDivision) {
  const float tiny = 1e-42f;
  auto array =
      harness().Put(Make(DType::kFloat32, {64}, [&](int64_t i) { return Value(tiny * (i + 1)); }));
  auto sum = harness().Compute(UfuncOf("add", 2), {array, array});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(harness().Get(*sum).At(0).real(), static_cast<double>(tiny + tiny))
      << "denormals were flushed";
  auto numbers =
      harness().Put(Make(DType::kFloat32, {1000}, [](int64_t i) { return Value(i + 1); }));
  auto others =
      harness().Put(Make(DType::kFloat32, {1000}, [](int64_t i) { return Value(i * 7 % 13 + 3); }));
  auto quotient = harness().Compute(UfuncOf("divide", 2), {numbers, others});
  ASSERT_TRUE(quotient.ok()) << quotient.status();
  const HostArray got = harness().Get(*quotient);
  for (int64_t i = 0; i < 1000; ++i) {
    const float expected = static_cast<float>(i + 1) / static_cast<float>(i * 7 % 13 + 3);
    ASSERT_EQ(got.At(i).real(), static_cast<double>(expected)) << "element " << i;
  }
}

// Quotients of 64 bits, which no floating-point type represents: of two arrays, and by one number
// for all elements.
template <typename T>
std::vector<T> Bits(const HostArray& array) {
  std::vector<T> values(array.buffer.size() / sizeof(T));
  std::memcpy(values.data(), array.buffer.data(), array.buffer.size());
  return values;
}
template <typename T>
HostArray OfBits(DType dtype, const std::vector<T>& values) {
  HostArray array{Contiguous(dtype, {static_cast<int64_t>(values.size())}), ""};
  array.buffer.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return array;
}
// Division by zero gives zero.
template <typename T>
T FloorQuotient(T a, T b) {
  if (b == 0) return 0;
  const __int128 quotient = static_cast<__int128>(a) / b;
  const bool down = static_cast<__int128>(a) % b != 0 && (a < 0) != (b < 0);
  return static_cast<T>(quotient - down);
}
template <typename T>
T Remainder(T a, T b) {
  if (b == 0) return 0;
  return static_cast<T>(static_cast<__int128>(a) - static_cast<__int128>(b) * FloorQuotient(a, b));
}
// Ends of the range, powers of two and their neighbours, and numbers of any length.
template <typename T>
std::vector<T> LongNumbers() {
  std::vector<T> numbers = {0, 1, 2, 3, 7, 10};
  uint64_t state = 1;
  for (int bit = 1; bit < 64; ++bit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t power = uint64_t{1} << bit;
    for (uint64_t number : {power - 1, power, power + 1, state >> (63 - bit), ~power, 0 - power})
      numbers.push_back(static_cast<T>(number));
  }
  return numbers;
}

class DivisionTest : public ElementwiseTest {
 protected:
  template <typename T>
  void Check(DType dtype) {
    const std::vector<T> numbers = LongNumbers<T>();
    std::vector<T> left, right;
    for (T a : numbers) {
      for (T b : numbers) {
        left.push_back(a);
        right.push_back(b);
      }
    }
    const HostArray a = OfBits(dtype, left), b = OfBits(dtype, right);
    for (const char* function : {"floor_divide", "remainder"}) {
      const bool divides = std::string(function) == "floor_divide";
      auto result = harness().Compute(UfuncOf(function, 2), {harness().Put(a), harness().Put(b)});
      ASSERT_TRUE(result.ok()) << result.status();
      const std::vector<T> got = Bits<T>(harness().Get(*result));
      for (size_t i = 0; i < got.size(); ++i) {
        const T want = divides ? FloorQuotient(left[i], right[i]) : Remainder(left[i], right[i]);
        ASSERT_EQ(got[i], want) << function << " of " << left[i] << " by " << right[i];
      }
      harness().Reset();
    }
    for (T divisor : {T(3), T(7), T(1000000007), static_cast<T>(-5), static_cast<T>(-1), T(0)}) {
      v1::Operation operation = UfuncOf("floor_divide", 2);
      v1::Scalar* scalar = operation.mutable_ufunc()->mutable_inputs(1)->mutable_scalar();
      if (std::is_signed_v<T>) {
        scalar->set_int_value(static_cast<int64_t>(divisor));
      } else {
        scalar->set_uint_value(static_cast<uint64_t>(divisor));
      }
      auto result = harness().Compute(operation, {harness().Put(a), DeviceArray()});
      ASSERT_TRUE(result.ok()) << result.status();
      const std::vector<T> got = Bits<T>(harness().Get(*result));
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], FloorQuotient(left[i], divisor)) << left[i] << " by " << divisor;
      harness().Reset();
    }
  }
};

TEST_F(DivisionTest, QuotientsOfLongIntegersAreExact) {
  Check<int64_t>(DType::kInt64);
  Check<uint64_t>(DType::kUInt64);
}

TEST_F(ElementwiseTest, OperandsOutsideTheirArenaAreRefused) {
  auto array = harness().Put(Counting(DType::kFloat32, {1000}));
  DeviceArray output;
  auto task = harness().Prepare(UfuncOf("add", 2), {array, array}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_elementwise()->mutable_inputs(0)->set_offset(Harness::kArenaBytes - 3996);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_elementwise()->mutable_outputs(0)->set_offset(UINT64_MAX - 3);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_elementwise()->mutable_inputs(1)->set_strides(0, int64_t{1} << 60);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_elementwise()->mutable_inputs(1)->set_arena(98);
  EXPECT_FALSE(harness().Run(bad).ok());
  bad = *task;
  bad.mutable_elementwise()->set_module(9999);
  EXPECT_FALSE(harness().Run(bad).ok());
  // None of them damaged the device.
  EXPECT_TRUE(harness().Run(*task).ok());
}

}  // namespace
}  // namespace stride::conformance
