#include <cmath>

#include "tests/conformance/device/harness.h"

// Methods of ufuncs: reduce in order, reduceat, outer, at.
namespace stride::conformance {
namespace {

v1::Operation ReduceBy(const std::string& name, std::vector<int32_t> axes) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function_name(name);
  operation.mutable_reduction()->mutable_axes()->Assign(axes.begin(), axes.end());
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation ReduceAtOf(const std::string& name, int axis) {
  v1::Operation operation;
  operation.mutable_reduce_at()->set_function(name);
  operation.mutable_reduce_at()->set_axis(axis);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation OuterOf(const std::string& name) {
  v1::Operation operation;
  operation.mutable_outer()->set_function(name);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation AtOf(const std::string& name, int num_indices, int axis = 0,
                   v1::IndexMode mode = v1::INDEX_MODE_UNSPECIFIED) {
  v1::Operation operation;
  operation.mutable_apply_at()->set_function(name);
  operation.mutable_apply_at()->mutable_values()->set_handle(1);
  for (int i = 0; i < num_indices; ++i) operation.mutable_apply_at()->add_indices();
  operation.mutable_apply_at()->set_axis(axis);
  operation.mutable_apply_at()->set_mode(mode);
  operation.add_outputs()->set_existing(true);
  return operation;
}

int64_t Mixed(int64_t i, int64_t n) { return static_cast<int64_t>(i * 2654435761u % 1000003 % n); }

class MethodTest : public DeviceTest {
 protected:
  HostArray Compute(const v1::Operation& operation, const std::vector<HostArray>& inputs) {
    std::vector<DeviceArray> placed;
    for (const HostArray& input : inputs) placed.push_back(harness().Put(input));
    auto result = harness().Compute(operation, placed);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result) : HostArray{Contiguous(DType::kBool, {0}), ""};
  }
};

TEST_F(MethodTest, ReducesByAnyBinaryUfunc) {
  const HostArray x =
      Make(DType::kInt64, {6, 40}, [](int64_t i) { return Value(12 * (i % 30 + 1)); });
  const HostArray gcd = Compute(ReduceBy("gcd", {1}), {x});
  const HostArray difference = Compute(ReduceBy("subtract", {1}), {x});
  const HostArray either = Compute(ReduceBy("bitwise_xor", {0, 1}), {x});
  int64_t all = 0;
  for (int64_t r = 0; r < 6; ++r) {
    double rest = x.At(r * 40).real();
    for (int64_t i = 1; i < 40; ++i) rest -= x.At(r * 40 + i).real();
    for (int64_t i = 0; i < 40; ++i) all ^= static_cast<int64_t>(x.At(r * 40 + i).real());
    EXPECT_EQ(gcd.At(r), Value(12));
    EXPECT_EQ(difference.At(r), Value(rest));
  }
  EXPECT_EQ(either.At(0), Value(static_cast<double>(all)));
  const HostArray floats =
      Make(DType::kFloat32, {5, 3}, [](int64_t i) { return Value(i % 2 == 0 ? NAN : i); });
  EXPECT_EQ(Compute(ReduceBy("fmax", {0, 1}), {floats}).At(0), Value(13));
  EXPECT_EQ(
      Compute(ReduceBy("gcd", {0}), {Make(DType::kInt32, {0}, [](int64_t) { return 0.0; })}).At(0),
      Value(0));
}

TEST_F(MethodTest, ReduceAtReducesPartsOfAnAxis) {
  const std::vector<int64_t> parts = {0, 4, 1, 5, 2, 6, 3, 7, 7};
  for (int axis : {0, 1}) {
    HostArray x = Make(DType::kInt32, {9, 8}, [](int64_t i) { return Value(i * i % 101); });
    if (axis == 1)
      x = Transposed(Make(DType::kInt32, {8, 9}, [](int64_t i) { return Value(i % 31); }));
    HostArray indices =
        EverySecond(Make(DType::kInt32, {18},
                         [&](int64_t i) { return Value(static_cast<double>(parts[i / 2])); }),
                    0);
    const HostArray got = Compute(ReduceAtOf("add", axis), {x, indices});
    ASSERT_EQ(got.info.dtype, DType::kInt64);
    ASSERT_EQ(got.info.shape,
              axis == 0 ? (std::vector<int64_t>{9, 8}) : (std::vector<int64_t>{9, 9}));
    const int64_t n = axis == 0 ? 9 : 8, other = axis == 0 ? 8 : 9;
    for (int64_t k = 0; k < other; ++k) {
      for (int64_t s = 0; s < 9; ++s) {
        const int64_t begin = parts[s], next = s + 1 < 9 ? parts[s + 1] : n;
        const int64_t end = next > begin ? next : begin + 1;
        Value expected = 0;
        for (int64_t i = begin; i < end; ++i) expected += x.At(axis == 0 ? i * 8 + k : k * 8 + i);
        ASSERT_EQ(got.At(axis == 0 ? s * 8 + k : k * 9 + s), expected)
            << axis << " " << k << " " << s;
      }
    }
  }
}

TEST_F(MethodTest, ReduceAtReportsIndexOutOfRange) {
  const HostArray x = Make(DType::kFloat32, {5}, [](int64_t i) { return Value(i); });
  for (int64_t wrong : {-1, 5}) {
    const HostArray indices =
        Make(DType::kInt64, {2}, [&](int64_t i) { return Value(i == 0 ? 0 : wrong); });
    auto result =
        harness().Compute(ReduceAtOf("add", 0), {harness().Put(x), harness().Put(indices)});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
  }
}

TEST_F(MethodTest, OuterHasTheAxesOfBoth) {
  const HostArray a = Transposed(Make(DType::kInt16, {3, 4}, [](int64_t i) { return Value(i); }));
  const HostArray b = Make(DType::kFloat64, {5}, [](int64_t i) { return Value(i + 0.5); });
  const HostArray got = Compute(OuterOf("subtract"), {a, b});
  ASSERT_EQ(got.info.shape, (std::vector<int64_t>{4, 3, 5}));
  ASSERT_EQ(got.info.dtype, DType::kFloat64);
  for (int64_t i = 0; i < 12; ++i) {
    for (int64_t j = 0; j < 5; ++j) ASSERT_EQ(got.At(i * 5 + j), a.At(i) - b.At(j));
  }
}

TEST_F(MethodTest, AtCountsEveryRepetition) {
  for (DType dtype :
       {DType::kInt8, DType::kInt64, DType::kFloat16, DType::kFloat64, DType::kComplex128}) {
    for (int64_t targets : {1, 7, 5000, 100000}) {
      const int64_t count = dtype == DType::kInt64 ? 20000 : 900;
      const HostArray indices = Make(DType::kInt32, {count}, [&](int64_t i) {
        const int64_t at = Mixed(i, targets);
        return Value(static_cast<double>(i % 2 == 0 ? at : at - targets));
      });
      const HostArray ones = Make(dtype, {1}, [](int64_t) { return Value(1); });
      std::vector<Value> expected(targets, Value(2));
      for (int64_t i = 0; i < count; ++i) expected[Mixed(i, targets)] += 1.0;
      if (dtype == DType::kInt8 && targets < 100) continue;  // it would wrap around
      const DeviceArray target =
          harness().Put(Make(dtype, {targets}, [](int64_t) { return Value(2); }));
      auto result =
          harness().Compute(AtOf("add", 1), {harness().Put(ones), harness().Put(indices)}, &target);
      ASSERT_TRUE(result.ok()) << result.status();
      ASSERT_EQ(harness().Get(*result).Values(), expected) << Name(dtype) << " " << targets;
      harness().Reset();
    }
  }
}

// A non-commutative function shows the order.
TEST_F(MethodTest, AtAppliesInTheOrderOfIndices) {
  const int64_t count = 3000, targets = 11, columns = 6;
  const HostArray indices = Make(DType::kUInt16, {count}, [&](int64_t i) {
    return Value(static_cast<double>(Mixed(i, targets)));
  });
  const HostArray values =
      Make(DType::kFloat64, {count, columns}, [](int64_t i) { return Value(i % 5 - 2); });
  std::vector<Value> expected(targets * columns, Value(3));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < columns; ++k) {
      Value& at = expected[Mixed(i, targets) * columns + k];
      at = std::copysign(at.real(), values.At(i * columns + k).real());
    }
  }
  const DeviceArray target =
      harness().Put(Make(DType::kFloat64, {targets, columns}, [](int64_t) { return Value(3); }));
  auto result = harness().Compute(AtOf("copysign", 1),
                                  {harness().Put(values), harness().Put(indices)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(harness().Get(*result).Values(), expected);
}

TEST_F(MethodTest, AtAcceptsSeveralIndicesAndAxes) {
  const HostArray rows = Make(DType::kInt64, {30, 1}, [](int64_t i) { return Value(i % 4); });
  const HostArray columns = Make(DType::kInt64, {3}, [](int64_t i) { return Value(i % 2); });
  const HostArray values = Make(DType::kInt32, {2, 30, 3}, [](int64_t i) { return Value(i); });
  std::vector<Value> expected(2 * 4 * 5, Value(0));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 30; ++i) {
      for (int64_t j = 0; j < 3; ++j)
        expected[(b * 4 + i % 4) * 5 + j % 2] += values.At((b * 30 + i) * 3 + j);
    }
  }
  const DeviceArray target =
      harness().Put(Make(DType::kInt32, {2, 4, 5}, [](int64_t) { return Value(0); }));
  auto result = harness().Compute(
      AtOf("add", 2, 1), {harness().Put(values), harness().Put(rows), harness().Put(columns)},
      &target);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(harness().Get(*result).Values(), expected);
}

TEST_F(MethodTest, AtWritesNothingWhenAnIndexIsOutOfRange) {
  const HostArray indices =
      Make(DType::kInt32, {100}, [](int64_t i) { return Value(i == 70 ? 9 : i % 9); });
  const HostArray ones = Make(DType::kInt32, {}, [](int64_t) { return Value(1); });
  const DeviceArray target =
      harness().Put(Make(DType::kInt32, {9}, [](int64_t) { return Value(5); }));
  auto result =
      harness().Compute(AtOf("add", 1), {harness().Put(ones), harness().Put(indices)}, &target);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
  EXPECT_EQ(harness().Get(target).Values(), std::vector<Value>(9, Value(5)));
  // The index is in a later part of many.
  for (int64_t bad : {9, -10}) {
    const HostArray many = Make(DType::kInt64, {9000}, [=](int64_t i) {
      return Value(static_cast<double>(i == 8500 ? bad : i % 18 - 9));
    });
    result = harness().Compute(AtOf("add", 1), {harness().Put(ones), harness().Put(many)}, &target);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
    EXPECT_EQ(harness().Get(target).Values(), std::vector<Value>(9, Value(5)));
  }
  auto wrapped = harness().Compute(AtOf("add", 1, 0, v1::INDEX_MODE_WRAP),
                                   {harness().Put(ones), harness().Put(indices)}, &target);
  EXPECT_TRUE(wrapped.ok()) << wrapped.status();
}

// The values of each target have their own magnitude, so that none may be lost next to larger ones.
// With `spread` 200 the magnitudes differ by more than a 128-bit fixed-point number covers.
TEST_F(MethodTest, AtAddsFloatsOfAnyMagnitude) {
  constexpr int64_t kValues = 30011;
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double epsilon = dtype == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
    for (int spread : {10, 60, 200}) {
      for (int64_t targets : {1, 7, 5000}) {
        auto place = [&](int64_t i) { return Mixed(i, targets); };
        auto value = [&](int64_t i) {
          const int size = static_cast<int>(Mixed(place(i) + 1, spread)) - spread / 2;
          return std::ldexp(1 + static_cast<double>(Mixed(i, 1000)) / 1024, size);
        };
        for (const char* name : {"add", "subtract"}) {
          const double sign = name[0] == 'a' ? 1 : -1;
          const DeviceArray values =
              harness().Put(Make(dtype, {kValues}, [&](int64_t i) { return Value(value(i)); }));
          const DeviceArray indices = harness().Put(Make(DType::kInt64, {kValues}, [&](int64_t i) {
            return Value(static_cast<double>(place(i)));
          }));
          std::vector<long double> sums(static_cast<size_t>(targets));
          for (int64_t i = 0; i < kValues; ++i)
            sums[static_cast<size_t>(place(i))] += sign * static_cast<long double>(value(i));
          std::string bytes;
          for (int run = 0; run < 2; ++run) {
            const DeviceArray target =
                harness().Put(Make(dtype, {targets}, [](int64_t) { return Value(0); }));
            auto result = harness().Compute(AtOf(name, 1), {values, indices}, &target);
            ASSERT_TRUE(result.ok()) << result.status();
            const HostArray got = harness().Get(target);
            for (int64_t i = 0; i < targets; ++i) {
              const auto want = static_cast<double>(sums[static_cast<size_t>(i)]);
              EXPECT_NEAR(
                  got.At(i).real(), want,
                  std::fabs(want) * epsilon * (2.0 * kValues / static_cast<double>(targets)))
                  << Name(dtype) << ", spread " << spread << ", target " << i << " of " << targets;
            }
            if (run == 1) EXPECT_EQ(got.buffer, bytes) << "another result in another run";
            bytes = got.buffer;
          }
          harness().Reset();
        }
      }
    }
  }
}

// By columns, with NaN and infinities, with repeated and negative indices, and integers.
TEST_F(MethodTest, AtAddsToColumnsAndKeepsSpecialValues) {
  constexpr int64_t kRows = 5, kColumns = 3, kValues = 400;
  for (DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kInt32, DType::kUInt64}) {
    auto place = [](int64_t i) { return Mixed(i, kRows); };
    const HostArray values = Make(dtype, {kValues, kColumns}, [](int64_t i) {
      return Value(static_cast<double>(Mixed(i, 3)));
    });
    const HostArray indices = Make(DType::kInt32, {kValues}, [&](int64_t i) {
      return Value(static_cast<double>(place(i) - (i % 2 == 0 ? kRows : 0)));
    });
    const DeviceArray target =
        harness().Put(Make(dtype, {kRows, kColumns}, [](int64_t i) { return Value(i); }));
    auto result =
        harness().Compute(AtOf("add", 1), {harness().Put(values), harness().Put(indices)}, &target);
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(target);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kColumns; ++c) {
        double want = static_cast<double>(r * kColumns + c);
        for (int64_t i = 0; i < kValues; ++i)
          if (place(i) == r) want += values.At(i * kColumns + c).real();
        if (dtype == DType::kInt8) want = static_cast<int8_t>(static_cast<int64_t>(want));
        EXPECT_EQ(got.At(r * kColumns + c), Value(want)) << Name(dtype) << " " << r << " " << c;
      }
    }
    harness().Reset();
  }
  const double kInf = INFINITY;
  // Target 0: infinity; 1: both infinities; 2: NaN; 3: only zeros; 4: nothing.
  const std::vector<double> some = {1, kInf, -kInf, kInf, NAN, 2, -0.0, -0.0};
  const std::vector<int> to = {0, 0, 1, 1, 2, 2, 3, 3};
  const HostArray values = Make(DType::kFloat32, {800},
                                [&](int64_t i) { return Value(some[static_cast<size_t>(i % 8)]); });
  const HostArray indices =
      Make(DType::kInt64, {800}, [&](int64_t i) { return Value(to[static_cast<size_t>(i % 8)]); });
  const DeviceArray target =
      harness().Put(Make(DType::kFloat32, {5}, [](int64_t i) { return Value(i < 3 ? 1 : -0.0); }));
  auto result =
      harness().Compute(AtOf("add", 1), {harness().Put(values), harness().Put(indices)}, &target);
  ASSERT_TRUE(result.ok()) << result.status();
  const HostArray got = harness().Get(target);
  EXPECT_EQ(got.At(0), Value(kInf));
  EXPECT_TRUE(std::isnan(got.At(1).real()));
  EXPECT_TRUE(std::isnan(got.At(2).real()));
  for (int64_t i : {3, 4}) {
    EXPECT_EQ(got.At(i), Value(0));
    EXPECT_TRUE(std::signbit(got.At(i).real())) << "target " << i;
  }
}

TEST_F(MethodTest, AtAcceptsScalarOrNoValue) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    const HostArray indices = Make(DType::kInt32, {4000}, [](int64_t i) { return Value(i % 3); });
    v1::Operation power = AtOf("multiply", 1);
    power.mutable_apply_at()->mutable_values()->mutable_scalar()->set_int_value(1);
    const DeviceArray target =
        harness().Put(Make(dtype, {4}, [](int64_t i) { return Value(i + 1); }));
    auto result = harness().Compute(power, {DeviceArray(), harness().Put(indices)}, &target);
    ASSERT_TRUE(result.ok()) << result.status();
    v1::Operation sums = AtOf("add", 1);
    sums.mutable_apply_at()->mutable_values()->mutable_scalar()->set_int_value(2);
    const HostArray few = Make(DType::kInt32, {30}, [](int64_t i) { return Value(i % 3); });
    result = harness().Compute(sums, {DeviceArray(), harness().Put(few)}, &target);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(harness().Get(target).Values(), (std::vector<Value>{21, 22, 23, 4}));
    // An odd number of times, an even one, never.
    v1::Operation negative = AtOf("negative", 1);
    negative.mutable_apply_at()->clear_values();
    const HostArray times =
        Make(DType::kInt64, {5}, [](int64_t i) { return Value(i < 3 ? 0 : 2); });
    result = harness().Compute(negative, {harness().Put(times)}, &target);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(harness().Get(target).Values(), (std::vector<Value>{-21, 22, 23, 4}));
    harness().Reset();
  }
}

}  // namespace
}  // namespace stride::conformance
