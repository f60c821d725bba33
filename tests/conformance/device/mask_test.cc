#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

v1::Operation CompressOf(int64_t count, int axis = 0) {
  v1::Operation operation;
  operation.mutable_compress()->mutable_input()->set_handle(1);
  operation.mutable_compress()->mutable_mask()->set_handle(2);
  operation.mutable_compress()->set_axis(axis);
  operation.mutable_compress()->set_count(count);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation NonzeroOf(int64_t count, int rank) {
  v1::Operation operation;
  operation.mutable_nonzero()->mutable_input()->set_handle(1);
  operation.mutable_nonzero()->set_count(count);
  for (int i = 0; i < rank; ++i) operation.add_outputs()->set_handle(100 + i);
  return operation;
}

class MaskTest : public DeviceTest {
 protected:
  static bool IsSet(int64_t i) { return i * 2654435761u % 97 % 3 == 0; }
  static HostArray Mask(std::vector<int64_t> shape) {
    return Make(DType::kBool, std::move(shape), [](int64_t i) { return Value(IsSet(i)); });
  }
  // The count as a client requests it.
  int64_t Count(const HostArray& array) {
    auto result = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_COUNT_NONZERO, {}),
                                    {harness().Put(array)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? static_cast<int64_t>(harness().Get(*result).At(0).real()) : -1;
  }
};

TEST_F(MaskTest, CountsNonzeroElements) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    EXPECT_EQ(Count(Make(dtype, {1000}, [](int64_t i) { return Value(i % 10 == 0 ? 0 : 1); })), 900)
        << Name(dtype);
  }
}

TEST_F(MaskTest, CompressesEveryLength) {
  for (int64_t n : {0, 1, 7, 255, 256, 2047, 2048, 2049, 100000, 3000000}) {
    const HostArray mask = Mask({n});
    const HostArray input = Make(DType::kInt32, {n}, [](int64_t i) { return Value(i); });
    std::vector<Value> expected;
    for (int64_t i = 0; i < n; ++i) {
      if (IsSet(i)) expected.push_back(Value(i));
    }
    const int64_t count = Count(mask);
    ASSERT_EQ(count, static_cast<int64_t>(expected.size()));
    auto result = harness().Compute(CompressOf(count), {harness().Put(input), harness().Put(mask)});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(harness().Get(*result).Values(), expected) << n;
    harness().Reset();
  }
}

TEST_F(MaskTest, MasksSomeAxesInAnyLayout) {
  for (DType dtype : {DType::kUInt8, DType::kFloat16, DType::kFloat64, DType::kComplex128}) {
    const HostArray input =
        Transposed(Make(dtype, {3, 4, 6, 5}, [](int64_t i) { return Value(i % 120); }));  // 3 4 5 6
    const HostArray mask = Reversed(Mask({4, 5}), 1);
    const int64_t count = Count(mask);
    auto result =
        harness().Compute(CompressOf(count, 1), {harness().Put(input), harness().Put(mask)});
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    ASSERT_EQ(got.info.shape, (std::vector<int64_t>{3, count, 6}));
    int64_t next = 0;
    for (int64_t m = 0; m < 20; ++m) {
      if (mask.At(m) == 0.0) continue;
      for (int64_t o = 0; o < 3; ++o) {
        for (int64_t k = 0; k < 6; ++k) {
          ASSERT_EQ(got.At((o * count + next) * 6 + k), input.At((o * 20 + m) * 6 + k))
              << Name(dtype);
        }
      }
      ++next;
    }
  }
}

TEST_F(MaskTest, WrongCountIsReportedAndWritesNothing) {
  const HostArray mask = Mask({5000});
  const int64_t count = Count(mask);
  for (int64_t wrong : {count - 1, count + 1}) {
    DeviceArray target = harness().Put(Make(DType::kInt32, {wrong}, [](int64_t) { return -1.0; }));
    auto result = harness().Compute(
        CompressOf(wrong),
        {harness().Put(Make(DType::kInt32, {5000}, [](int64_t i) { return Value(i); })),
         harness().Put(mask)},
        &target);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
    EXPECT_NE(result.status().message().find(std::to_string(count)), absl::string_view::npos);
    EXPECT_EQ(harness().Get(target).Values(), std::vector<Value>(wrong, Value(-1)));
  }
  auto nonzero = harness().ComputeAll(NonzeroOf(count + 1, 1), {harness().Put(mask)});
  EXPECT_EQ(nonzero.status().code(), absl::StatusCode::kOutOfRange) << nonzero.status();
}

TEST_F(MaskTest, ListsIndicesOfNonzeroElements) {
  for (DType dtype : {DType::kBool, DType::kInt16, DType::kFloat32, DType::kComplex64}) {
    const HostArray input =
        Make(dtype, {7, 40, 33}, [](int64_t i) { return Value(IsSet(i) ? 1 : 0); });
    const int64_t count = Count(input);
    auto result = harness().ComputeAll(NonzeroOf(count, 3), {harness().Put(input)});
    ASSERT_TRUE(result.ok()) << result.status();
    const auto i0 = harness().Get((*result)[0]).Values(), i1 = harness().Get((*result)[1]).Values(),
               i2 = harness().Get((*result)[2]).Values();
    int64_t next = 0;
    for (int64_t i = 0; i < 7 * 40 * 33; ++i) {
      if (!IsSet(i)) continue;
      ASSERT_EQ(i0[next], Value(i / 33 / 40)) << i;
      ASSERT_EQ(i1[next], Value(i / 33 % 40)) << i;
      ASSERT_EQ(i2[next], Value(i % 33)) << i;
      ++next;
    }
    ASSERT_EQ(next, count);
  }
}

}  // namespace
}  // namespace stride::conformance
