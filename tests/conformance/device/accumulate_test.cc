#include <cmath>
#include <functional>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

v1::Operation AccumulateOf(const std::string& function, int axis, bool initial = false) {
  v1::Operation operation;
  auto* accumulation = operation.mutable_accumulation();
  accumulation->set_function(function);
  accumulation->mutable_input()->set_handle(1);
  accumulation->set_axis(axis);
  accumulation->set_include_initial(initial);
  operation.add_outputs()->set_handle(100);
  return operation;
}

class AccumulateTest : public DeviceTest {
 protected:
  using Combine = std::function<Value(Value, Value)>;

  // Compared with the same accumulation on the host, element by element: values are exact in every
  // grouping. `expected` is the result's type.
  void Expect(const std::string& function, const HostArray& input, int axis, const Combine& combine,
              DType expected, const Value* initial = nullptr) {
    auto result =
        harness().Compute(AccumulateOf(function, axis, initial != nullptr), {harness().Put(input)});
    ASSERT_TRUE(result.ok()) << result.status() << " for " << function;
    const HostArray got = harness().Get(*result);
    ASSERT_EQ(got.info.dtype, expected);
    int64_t inner = 1, outer = 1;
    const auto& shape = input.info.shape;
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    const int64_t n = shape[axis], shift = initial != nullptr ? 1 : 0;
    ASSERT_EQ(got.info.shape[axis], n + shift);
    const auto values = input.Values(), results = got.Values();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) {
        if (initial != nullptr) {
          ASSERT_EQ(results[o * (n + 1) * inner + k], *initial);
        }
        Value sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          const Value next = values[(o * n + i) * inner + k];
          sum = i == 0 ? next : combine(sum, next);
          ASSERT_EQ(results[(o * (n + shift) + i + shift) * inner + k], sum)
              << function << " of " << Name(input.info.dtype) << ", row " << o << ", column " << k
              << ", element " << i << " of " << n;
        }
      }
    }
    harness().Reset();
  }
  static HostArray Small(DType dtype, std::vector<int64_t> shape) {
    const int values = IsBool(dtype) ? 2 : 3;
    return Make(dtype, std::move(shape),
                [=](int64_t i) { return Value((i * 7 + 3) % 5 % values); });
  }
  static Value Add(Value a, Value b) { return a + b; }
  static Value Max(Value a, Value b) { return std::max(a.real(), b.real()); }
};

TEST_F(AccumulateTest, SumsEveryDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    DType expected = dtype;
    if (IsBool(dtype) || IsInteger(dtype))
      expected = IsUnsigned(dtype) ? DType::kUInt64 : DType::kInt64;
    Expect("add", Small(dtype, {3, 50}), 1, Add, expected);
  }
}

TEST_F(AccumulateTest, SumsEveryLength) {
  for (int64_t n : {1, 2, 63, 64, 65, 255, 256, 2047, 2048, 2049, 4096, 10000, 65537, 3000001}) {
    Expect("add", Small(DType::kInt32, {n}), 0, Add, DType::kInt64);
  }
  // Enough chunks that they exceed one step at every level.
  Expect("add", Small(DType::kFloat64, {2, 1200000}), 1, Add, DType::kFloat64);
}

TEST_F(AccumulateTest, AccumulatesAlongAnyAxisOfAnyLayout) {
  for (int axis : {0, 1, 2}) {
    Expect("add", Small(DType::kInt64, {5, 70, 11}), axis, Add, DType::kInt64);
    Expect("add", Transposed(Small(DType::kFloat64, {5, 11, 70})), axis, Add, DType::kFloat64);
    Expect("maximum", Reversed(Small(DType::kInt16, {5, 70, 11}), axis), axis, Max, DType::kInt16);
    Expect("add", EverySecond(Small(DType::kUInt8, {5, 70, 22}), 2), axis, Add, DType::kUInt64);
  }
  // Many rows: each thread processes one.
  Expect("add", Small(DType::kInt64, {300, 9001}), 0, Add, DType::kInt64);
  Expect("add", Small(DType::kInt64, {9001, 300}), 1, Add, DType::kInt64);
  Expect("add", Small(DType::kInt64, {70, 9001}), 1, Add, DType::kInt64);
}

TEST_F(AccumulateTest, SplitsAdjacentRows) {
  const Value zero = 0;
  for (int64_t n : {64, 65, 127, 128, 129, 1000}) {
    for (int64_t rows : {511, 512, 777, 4096}) {
      Expect("add", Small(DType::kInt32, {n, rows}), 0, Add, DType::kInt64);
    }
  }
  Expect("add", Small(DType::kInt32, {5003, 600}), 0, Add, DType::kInt64);
  Expect("add", Small(DType::kComplex128, {700, 600}), 0, Add, DType::kComplex128);
  Expect("add", Small(DType::kFloat32, {3, 300, 900}), 1, Add, DType::kFloat32, &zero);
  Expect("maximum", Reversed(Small(DType::kInt16, {900, 700}), 0), 0, Max, DType::kInt16);
  Expect("add", EverySecond(Small(DType::kUInt8, {500, 1400}), 1), 0, Add, DType::kUInt64);
  // Too many rows to split.
  Expect("add", Small(DType::kInt8, {66, 70000}), 0, Add, DType::kInt64);
}

TEST_F(AccumulateTest, BeginsWithTheIdentity) {
  const Value zero = 0, one = 1, all = 255;
  Expect("add", Small(DType::kInt32, {4, 30}), 1, Add, DType::kInt64, &zero);
  Expect("add", Small(DType::kInt32, {0}), 0, Add, DType::kInt64, &zero);
  Expect("add", Small(DType::kFloat16, {4, 30}), 0, Add, DType::kFloat16, &zero);
  Expect(
      "multiply",
      Make(DType::kFloat32, {20000}, [](int64_t i) { return i % 500 == 7 ? -1.0 : 1.0; }), 0,
      [](Value a, Value b) { return a * b; }, DType::kFloat32, &one);
  Expect(
      "bitwise_and", Make(DType::kUInt8, {9}, [](int64_t i) { return 255 - (i >> 1); }), 0,
      [](Value a, Value b) {
        return static_cast<double>(static_cast<int>(a.real()) & static_cast<int>(b.real()));
      },
      DType::kUInt8, &all);
  Expect("add", Small(DType::kFloat32, {0}), 0, Add, DType::kFloat32);
  Expect("add", Small(DType::kFloat32, {0, 5000}), 1, Add, DType::kFloat32);
  Expect("add", Small(DType::kFloat32, {3, 0}), 1, Add, DType::kFloat32, &zero);
}

TEST_F(AccumulateTest, AcceptsAnyBinaryFunction) {
  // Only the grouping from left to right is correct.
  Expect(
      "subtract", Small(DType::kFloat64, {5000}), 0, [](Value a, Value b) { return a - b; },
      DType::kFloat64);
  Expect(
      "divide", Make(DType::kInt32, {60}, [](int64_t i) { return i % 3 == 0 ? 2.0 : 1.0; }), 0,
      [](Value a, Value b) { return a / b; }, DType::kFloat64);
  Expect(
      "logical_or",
      Make(DType::kFloat32, {2, 5000}, [](int64_t i) { return i % 5000 > 3000 ? 4.5 : 0; }), 1,
      [](Value a, Value b) { return a != 0.0 || b != 0.0 ? 1.0 : 0.0; }, DType::kBool);
}

TEST_F(AccumulateTest, NaNPropagatesInMaximum) {
  const double nan = std::nan("");
  auto result = harness().Compute(AccumulateOf("maximum", 0),
                                  {harness().Put(Make(DType::kFloat32, {10000}, [&](int64_t i) {
                                    return i == 7000 ? nan : i % 9;
                                  }))});
  ASSERT_TRUE(result.ok()) << result.status();
  const HostArray got = harness().Get(*result);
  EXPECT_EQ(got.At(6999).real(), 8);
  EXPECT_TRUE(std::isnan(got.At(7000).real()));
  EXPECT_TRUE(std::isnan(got.At(9999).real()));
}

TEST_F(AccumulateTest, WritesIntoAView) {
  DeviceArray target = harness().Put(Make(DType::kInt64, {20}, [](int64_t) { return -1.0; }));
  const DeviceArray whole = target;
  target.info.shape = {10};
  target.info.strides = {16};
  auto result = harness().Compute(
      AccumulateOf("add", 0),
      {harness().Put(Make(DType::kInt64, {10}, [](int64_t i) { return i; }))}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  const HostArray got = harness().Get(whole);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(got.At(2 * i).real(), i * (i + 1) / 2);
    EXPECT_EQ(got.At(2 * i + 1).real(), -1);
  }
}

TEST_F(AccumulateTest, OperandsOutsideTheirArenaAreRefused) {
  auto array = harness().Put(Small(DType::kFloat32, {1000}));
  DeviceArray output;
  auto task = harness().Prepare(AccumulateOf("add", 0), {array}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_routine()->mutable_operands(0)->mutable_operand()->set_offset(Harness::kArenaBytes -
                                                                            3996);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_routine()->mutable_operands(1)->set_own_strides(0, int64_t{1} << 60);
  EXPECT_REFUSED(harness().Run(bad));
  EXPECT_TRUE(harness().Run(*task).ok());
}

TEST_F(AccumulateTest, ReverseAndExclusive) {
  for (auto [rows, n] : std::vector<std::pair<int64_t, int64_t>>{
           {3, 1}, {2, 0}, {4, 9}, {3, 1000}, {2, 20000}, {9000, 3}}) {
    for (int form = 1; form < 8; ++form) {
      const bool reverse = form & 1, exclusive = form & 2, swapped = form & 4;
      HostArray input = Make(
          DType::kInt32, swapped ? std::vector<int64_t>{n, rows} : std::vector<int64_t>{rows, n},
          [](int64_t i) { return Value(i % 23); });
      if (swapped) input = Transposed(input);
      v1::Operation operation = AccumulateOf("add", 1);
      operation.mutable_accumulation()->set_reverse(reverse);
      operation.mutable_accumulation()->set_exclusive(exclusive);
      auto result = harness().Compute(operation, {harness().Put(input)});
      ASSERT_TRUE(result.ok()) << result.status();
      const HostArray got = harness().Get(*result);
      ASSERT_EQ(got.info.shape, (std::vector<int64_t>{rows, n}));
      for (int64_t r = 0; r < rows; ++r) {
        Value sum = 0;
        for (int64_t k = 0; k < n; ++k) {
          const int64_t i = r * n + (reverse ? n - 1 - k : k);
          const Value next = sum + input.At(i);
          ASSERT_EQ(got.At(i), exclusive ? sum : next) << form << " " << n << " " << k;
          sum = next;
        }
      }
      harness().Reset();
    }
  }
  v1::Operation initial = AccumulateOf("add", 0, true);
  initial.mutable_accumulation()->set_reverse(true);
  auto result = harness().Compute(
      initial, {harness().Put(Make(DType::kInt64, {3}, [](int64_t i) { return Value(i + 1); }))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(harness().Get(*result).Values(), (std::vector<Value>{6, 5, 3, 0}));
}

}  // namespace
}  // namespace stride::conformance
