#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

template <typename Message>
void Fill(Message* message, int num_indices, int axis, v1::IndexMode mode, bool along) {
  for (int i = 0; i < num_indices; ++i) message->add_indices()->set_handle(10 + i);
  message->set_axis(axis);
  message->set_mode(mode);
  message->set_along_axis(along);
}

v1::Operation GatherOf(int num_indices, int axis, v1::IndexMode mode = v1::INDEX_MODE_RAISE,
                       bool along = false) {
  v1::Operation operation;
  operation.mutable_gather()->mutable_input()->set_handle(1);
  Fill(operation.mutable_gather(), num_indices, axis, mode, along);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation ScatterOf(int num_indices, int axis, v1::IndexMode mode = v1::INDEX_MODE_RAISE,
                        bool along = false) {
  v1::Operation operation;
  operation.mutable_scatter()->mutable_values()->set_handle(1);
  Fill(operation.mutable_scatter(), num_indices, axis, mode, along);
  operation.add_outputs()->set_handle(100);
  operation.mutable_outputs(0)->set_existing(true);
  return operation;
}

class IndicesTest : public DeviceTest {
 protected:
  static HostArray Counting(DType dtype, std::vector<int64_t> shape, int first = 0) {
    return Make(dtype, std::move(shape), [=](int64_t i) { return Value((i + first) % 101); });
  }
  static HostArray Indices(DType dtype, std::vector<int64_t> shape, int64_t n) {
    return Make(dtype, std::move(shape), [=](int64_t i) { return Value(i * 7 % n); });
  }
  HostArray Gather(const v1::Operation& operation, const std::vector<HostArray>& inputs) {
    std::vector<DeviceArray> placed;
    for (const HostArray& input : inputs) placed.push_back(harness().Put(input));
    auto result = harness().Compute(operation, placed);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result)
                       : Make(DType::kBool, {0}, [](int64_t) { return 0; });
  }
};

TEST_F(IndicesTest, TakesAlongEveryAxisAndDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    const HostArray input =
        Make(dtype, {4, 5, 6}, [&](int64_t i) { return Value(IsBool(dtype) ? i % 2 : i % 50); });
    for (int axis : {0, 1, 2}) {
      const int64_t n = input.info.shape[axis];
      const HostArray index = Indices(DType::kInt32, {3, 2}, n);
      const HostArray got = Gather(GatherOf(1, axis), {input, index});
      std::vector<int64_t> shape = input.info.shape;
      shape.erase(shape.begin() + axis);
      shape.insert(shape.begin() + axis, {3, 2});
      ASSERT_EQ(got.info.shape, shape);
      int64_t inner = 1;
      for (int i = axis + 1; i < 3; ++i) inner *= input.info.shape[i];
      for (int64_t i = 0; i < got.info.num_elements(); ++i) {
        const int64_t o = i / inner / 6, p = i / inner % 6, k = i % inner;
        const int64_t at = static_cast<int64_t>(index.At(p).real());
        ASSERT_EQ(got.At(i), input.At((o * n + at) * inner + k)) << Name(dtype) << axis << " " << i;
      }
    }
    harness().Reset();
  }
}

TEST_F(IndicesTest, IndexArraysOfEveryTypeBroadcastTogether) {
  const HostArray input = Transposed(Counting(DType::kFloat64, {3, 9, 7}));  // (3, 7, 9)
  for (DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32,
                      DType::kUInt32, DType::kInt64, DType::kUInt64}) {
    const HostArray rows = Indices(dtype, {4, 1}, 7), columns = Indices(DType::kInt64, {5}, 9);
    const HostArray got = Gather(GatherOf(2, 1), {input, rows, columns});
    ASSERT_EQ(got.info.shape, (std::vector<int64_t>{3, 4, 5}));
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t r = static_cast<int64_t>(rows.At(i / 5 % 4).real());
      const int64_t c = static_cast<int64_t>(columns.At(i % 5).real());
      ASSERT_EQ(got.At(i), input.At((i / 20 * 7 + r) * 9 + c)) << Name(dtype) << i;
    }
  }
}

TEST_F(IndicesTest, NegativeIndicesCountFromTheEnd) {
  const HostArray input = Counting(DType::kInt32, {10});
  const HostArray index = Make(DType::kInt64, {4}, [](int64_t i) { return -1.0 - 3.0 * i; });
  EXPECT_EQ(Gather(GatherOf(1, 0), {input, index}).Values(), (std::vector<Value>{9, 6, 3, 0}));
}

TEST_F(IndicesTest, ModesOfIndicesOutOfRange) {
  const HostArray input = Counting(DType::kInt32, {10});
  const std::vector<double> values = {-11, -1, 3, 10, 25, 127};
  const HostArray index = Make(DType::kInt8, {6}, [&](int64_t i) { return values[i]; });
  EXPECT_EQ(Gather(GatherOf(1, 0, v1::INDEX_MODE_WRAP), {input, index}).Values(),
            (std::vector<Value>{9, 9, 3, 0, 5, 7}));
  EXPECT_EQ(Gather(GatherOf(1, 0, v1::INDEX_MODE_CLIP), {input, index}).Values(),
            (std::vector<Value>{0, 0, 3, 9, 9, 9}));
  auto raised = harness().Compute(GatherOf(1, 0), {harness().Put(input), harness().Put(index)});
  EXPECT_EQ(raised.status().code(), absl::StatusCode::kOutOfRange) << raised.status();
  // A failure affects only its task.
  const HostArray good = Indices(DType::kInt8, {6}, 10);
  EXPECT_EQ(Gather(GatherOf(1, 0), {input, good}).Values(), (std::vector<Value>{0, 7, 4, 1, 8, 5}));
  // No index is valid in an empty array.
  auto empty =
      harness().Compute(GatherOf(1, 0, v1::INDEX_MODE_WRAP),
                        {harness().Put(Counting(DType::kInt32, {0})), harness().Put(good)});
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kOutOfRange) << empty.status();
  EXPECT_EQ(Gather(GatherOf(1, 0), {input, Counting(DType::kInt64, {0})}).info.shape,
            (std::vector<int64_t>{0}));
}

TEST_F(IndicesTest, HugeUnsignedIndicesAreNotNegative) {
  const HostArray input = Counting(DType::kInt32, {10});
  HostArray index = Make(DType::kUInt64, {1}, [](int64_t) { return 0; });
  index.buffer = std::string(8, '\xff');  // 2^64 - 1: -1 as a signed number
  auto raised = harness().Compute(GatherOf(1, 0), {harness().Put(input), harness().Put(index)});
  EXPECT_EQ(raised.status().code(), absl::StatusCode::kOutOfRange) << raised.status();
  EXPECT_EQ(Gather(GatherOf(1, 0, v1::INDEX_MODE_WRAP), {input, index}).At(0), Value(5));
}

TEST_F(IndicesTest, TakesAlongAnAxisElementByElement) {
  const HostArray input = Counting(DType::kFloat32, {4, 6, 5});
  const HostArray index = Indices(DType::kInt64, {4, 3, 1}, 6);
  const HostArray got = Gather(GatherOf(1, 1, v1::INDEX_MODE_RAISE, true), {input, index});
  ASSERT_EQ(got.info.shape, (std::vector<int64_t>{4, 3, 5}));
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t at = static_cast<int64_t>(index.At(i / 5).real());
    ASSERT_EQ(got.At(i), input.At((i / 15 * 6 + at) * 5 + i % 5)) << i;
  }
}

TEST_F(IndicesTest, TakesManyRows) {
  const HostArray input = Counting(DType::kFloat32, {10007, 16});
  const HostArray index = Indices(DType::kInt32, {20000}, 10007);
  const HostArray got = Gather(GatherOf(1, 0), {input, index});
  for (int64_t i = 0; i < 20000 * 16; ++i) {
    ASSERT_EQ(got.At(i), input.At(i / 16 * 7 % 10007 * 16 + i % 16)) << i;
  }
}

TEST_F(IndicesTest, AssignsByIndices) {
  for (DType dtype :
       {DType::kBool, DType::kInt8, DType::kFloat16, DType::kFloat64, DType::kComplex128}) {
    const HostArray before = Make(dtype, {5, 6, 3}, [](int64_t i) { return Value(i % 2); });
    DeviceArray target = harness().Put(before);
    const HostArray index = Make(DType::kInt64, {4}, [](int64_t i) { return i * 5 % 6 - 6.0; });
    const HostArray values =
        Make(dtype, {4, 3}, [&](int64_t i) { return Value(IsBool(dtype) ? i % 3 == 0 : i + 20); });
    auto result =
        harness().Compute(ScatterOf(1, 1), {harness().Put(values), harness().Put(index)}, &target);
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<Value> expected = before.Values();
    for (int64_t o = 0; o < 5; ++o) {
      for (int64_t p = 0; p < 4; ++p) {
        for (int64_t k = 0; k < 3; ++k)
          expected[(o * 6 + p * 5 % 6) * 3 + k] = values.At(p * 3 + k);
      }
    }
    ASSERT_EQ(harness().Get(target).Values(), expected) << Name(dtype);
  }
}

TEST_F(IndicesTest, LastOfEqualIndicesWins) {
  const int64_t n = 100000;
  const HostArray index = Make(DType::kInt32, {n}, [](int64_t i) { return Value(i * 13 % 1000); });
  const HostArray values = Make(DType::kFloat64, {n}, [](int64_t i) { return Value(i); });
  DeviceArray target = harness().Put(Counting(DType::kFloat64, {1500}));
  auto result =
      harness().Compute(ScatterOf(1, 0), {harness().Put(values), harness().Put(index)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<Value> expected = Counting(DType::kFloat64, {1500}).Values();
  for (int64_t i = 0; i < n; ++i) expected[i * 13 % 1000] = i;
  EXPECT_EQ(harness().Get(target).Values(), expected);
  // Two index arrays, whole rows at each, values repeated along them.
  DeviceArray matrix = harness().Put(Counting(DType::kInt32, {3, 4, 8}));
  const HostArray a = Make(DType::kInt64, {40}, [](int64_t i) { return Value(i % 3); });
  const HostArray b = Make(DType::kInt64, {40}, [](int64_t i) { return Value(i % 4); });
  const HostArray c = Make(DType::kInt32, {40, 1}, [](int64_t i) { return Value(1000 + i); });
  result = harness().Compute(ScatterOf(2, 0),
                             {harness().Put(c), harness().Put(a), harness().Put(b)}, &matrix);
  ASSERT_TRUE(result.ok()) << result.status();
  const HostArray got = harness().Get(matrix);
  for (int64_t i = 0; i < 96; ++i) {
    int64_t last = 0;
    for (int64_t k = 0; k < 40; ++k) last = k % 3 == i / 32 && k % 4 == i / 8 % 4 ? k : last;
    ASSERT_EQ(got.At(i), Value(1000 + last)) << i;
  }
}

// Few indices into many rows of a large array: not all targets have memory between passes.
TEST_F(IndicesTest, AssignsFewOfMany) {
  const int64_t n = 200000;
  DeviceArray target = harness().Put(Make(DType::kInt32, {2, n, 3}, [](int64_t) { return -1.0; }));
  const HostArray index = Make(DType::kInt32, {50}, [](int64_t i) { return Value(i % 40 * 4999); });
  const HostArray values = Make(DType::kInt32, {2, 50, 3}, [](int64_t i) { return Value(i); });
  auto result =
      harness().Compute(ScatterOf(1, 1), {harness().Put(values), harness().Put(index)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<Value> expected(2 * n * 3, Value(-1));
  for (int64_t i = 0; i < 300; ++i)
    expected[(i / 150 * n + i / 3 % 50 % 40 * 4999) * 3 + i % 3] = values.At(i);
  EXPECT_EQ(harness().Get(target).Values(), expected);
  // The same along an axis, with separate indices per row.
  const HostArray own =
      Make(DType::kInt64, {2, 20, 3}, [](int64_t i) { return Value(i % 15 * 7); });
  const HostArray more = Make(DType::kInt32, {2, 20, 3}, [](int64_t i) { return Value(1000 + i); });
  result = harness().Compute(ScatterOf(1, 1, v1::INDEX_MODE_RAISE, true),
                             {harness().Put(more), harness().Put(own)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  for (int64_t i = 0; i < 120; ++i) expected[(i / 60 * n + i % 15 * 7) * 3 + i % 3] = more.At(i);
  EXPECT_EQ(harness().Get(target).Values(), expected);
}

TEST_F(IndicesTest, PutsAlongAnAxisIntoAView) {
  DeviceArray target = harness().Put(Make(DType::kInt64, {4, 10}, [](int64_t) { return -1.0; }));
  const DeviceArray whole = target;
  target.info.shape = {4, 5};
  target.info.strides = {80, 16};
  const HostArray index =
      Make(DType::kInt64, {4, 3}, [](int64_t i) { return Value((i + i / 3) % 5); });
  const HostArray values = Counting(DType::kInt64, {4, 3}, 50);
  auto result = harness().Compute(ScatterOf(1, 1, v1::INDEX_MODE_RAISE, true),
                                  {harness().Put(values), harness().Put(index)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<Value> expected(40, Value(-1));
  for (int64_t i = 0; i < 12; ++i) expected[i / 3 * 10 + (i + i / 3) % 5 * 2] = values.At(i);
  EXPECT_EQ(harness().Get(whole).Values(), expected);
}

TEST_F(IndicesTest, IndexOutOfRangeWritesNothing) {
  DeviceArray target = harness().Put(Counting(DType::kInt64, {10}));
  const HostArray index =
      Make(DType::kInt64, {5}, [](int64_t i) { return Value(i == 3 ? 10 : i); });
  auto result = harness().Compute(
      ScatterOf(1, 0), {harness().Put(Counting(DType::kInt64, {5}, 70)), harness().Put(index)},
      &target);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
  EXPECT_EQ(harness().Get(target).Values(), Counting(DType::kInt64, {10}).Values());
  result = harness().Compute(
      ScatterOf(1, 0, v1::INDEX_MODE_CLIP),
      {harness().Put(Counting(DType::kInt64, {5}, 70)), harness().Put(index)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(harness().Get(target).At(9), Value(73));
}

}  // namespace
}  // namespace stride::conformance
