// Elements by rank: Select, Partition, and orders by several keys.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

bool IsNan(Value v) { return std::isnan(v.real()) || std::isnan(v.imag()); }

bool Before(Value a, Value b) {
  if (IsNan(a) || IsNan(b)) return !IsNan(a);
  return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
}

bool Same(Value a, Value b) { return (IsNan(a) && IsNan(b)) || a == b; }

Value Mixed(int64_t i, int64_t range) {
  return static_cast<double>(
      static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 33) % range);
}

// Values of the dtype with repetitions, negative ones and NaN if it has them.
HostArray MixedArray(DType dtype, std::vector<int64_t> shape, int64_t range = 5000) {
  if (ItemSize(dtype) == 1) range = IsBool(dtype) ? 2 : 100;
  if (ItemSize(dtype) == 2 && !IsInteger(dtype)) range = std::min<int64_t>(range, 200);
  const bool has_sign = !IsBool(dtype) && !IsUnsigned(dtype);
  const bool has_nan = IsFloat(dtype) || IsComplex(dtype);
  return Make(dtype, std::move(shape), [&](int64_t i) {
    if (has_nan && i % 101 == 7) return Value(std::nan(""));
    Value v = Mixed(i, range) - (has_sign ? static_cast<double>(range / 2) : 0.0);
    if (IsComplex(dtype)) v += Value(0, Mixed(i * 3 + 1, 3).real());
    return v;
  });
}

// The elements along an axis, slice by slice: all other axes in C order.
std::vector<std::vector<Value>> Slices(const HostArray& array, int axis) {
  const auto& shape = array.info.shape;
  int64_t inner = 1, outer = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  std::vector<std::vector<Value>> slices;
  const auto values = array.Values();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < inner; ++k) {
      slices.emplace_back();
      for (int64_t i = 0; i < shape[axis]; ++i)
        slices.back().push_back(values[(o * shape[axis] + i) * inner + k]);
    }
  }
  return slices;
}

v1::Operation SelectOf(int axis) {
  v1::Operation operation;
  operation.mutable_select()->mutable_input()->set_handle(1);
  operation.mutable_select()->mutable_ranks()->set_handle(2);
  operation.mutable_select()->set_axis(axis);
  operation.add_outputs()->set_handle(100);
  return operation;
}

HostArray Ranks(const std::vector<int64_t>& ranks) {
  return Make(DType::kInt64, {static_cast<int64_t>(ranks.size())},
              [&](int64_t i) { return static_cast<double>(ranks[i]); });
}

class SelectTest : public DeviceTest {
 protected:
  void ExpectSelects(const HostArray& input, int axis, const std::vector<int64_t>& ranks) {
    auto result =
        harness().Compute(SelectOf(axis), {harness().Put(input), harness().Put(Ranks(ranks))});
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    ASSERT_EQ(got.info.dtype, input.info.dtype);
    auto slices = Slices(input, axis);
    const auto found = Slices(got, axis);
    ASSERT_EQ(found.size(), slices.size());
    for (size_t s = 0; s < slices.size(); ++s) {
      std::stable_sort(slices[s].begin(), slices[s].end(), Before);
      const auto n = static_cast<int64_t>(slices[s].size());
      ASSERT_EQ(found[s].size(), ranks.size());
      for (size_t j = 0; j < ranks.size(); ++j) {
        const int64_t place = ranks[j] < 0 ? ranks[j] + n : ranks[j];
        ASSERT_PRED2(Same, found[s][j], slices[s][place])
            << Name(input.info.dtype) << " rank " << ranks[j] << " of " << n << ", slice " << s;
      }
    }
    harness().Reset();
  }

  void ExpectPartitions(const HostArray& input, int axis, const std::vector<int64_t>& kth) {
    for (bool indices : {false, true}) {
      v1::Operation operation;
      operation.mutable_partition()->mutable_input()->set_handle(1);
      operation.mutable_partition()->set_axis(axis);
      operation.mutable_partition()->set_indices(indices);
      for (int64_t place : kth) operation.mutable_partition()->add_kth(place);
      operation.add_outputs()->set_handle(100);
      auto result = harness().Compute(operation, {harness().Put(input)});
      ASSERT_TRUE(result.ok()) << result.status();
      const HostArray got = harness().Get(*result);
      ASSERT_EQ(got.info.dtype, indices ? DType::kInt64 : input.info.dtype);
      const auto slices = Slices(input, axis);
      const auto found = Slices(got, axis);
      for (size_t s = 0; s < slices.size(); ++s) {
        std::vector<Value> moved = found[s];
        if (indices) {
          std::vector<bool> seen(moved.size());
          for (Value& value : moved) {
            const auto place = static_cast<size_t>(value.real());
            ASSERT_LT(place, seen.size());
            ASSERT_FALSE(seen[place]) << "an element occurs twice: " << place;
            seen[place] = true;
            value = slices[s][place];
          }
        }
        ExpectPartitioned(moved, slices[s], kth, input.info.dtype);
        if (HasFatalFailure()) return;
      }
      harness().Reset();
    }
  }

 private:
  static void ExpectPartitioned(const std::vector<Value>& moved, std::vector<Value> slice,
                                const std::vector<int64_t>& kth, DType dtype) {
    std::vector<Value> all = moved;
    std::stable_sort(slice.begin(), slice.end(), Before);
    std::stable_sort(all.begin(), all.end(), Before);
    for (size_t i = 0; i < all.size(); ++i) ASSERT_PRED2(Same, all[i], slice[i]) << Name(dtype);
    const auto n = static_cast<int64_t>(slice.size());
    for (int64_t given : kth) {
      const int64_t place = given < 0 ? given + n : given;
      ASSERT_PRED2(Same, moved[place], slice[place]) << Name(dtype) << " " << place << " of " << n;
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_FALSE(i < place && Before(moved[place], moved[i])) << i << " before " << place;
        ASSERT_FALSE(i > place && Before(moved[i], moved[place])) << i << " after " << place;
      }
    }
  }
};

TEST_F(SelectTest, SelectsFromEveryDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    ExpectSelects(MixedArray(dtype, {3, 3000}), 1, {0, 1499, 1500, -1, 2990, 17});
    ExpectSelects(MixedArray(dtype, {400, 3}), 0, {399, 0, 200, 200});
  }
}

// Short rows, rows of one block each, rows of many chunks, and more ranks than one pass seeks.
TEST_F(SelectTest, SelectsFromEveryLength) {
  for (int64_t n : {1, 2, 3, 33, 1023, 1024, 1025, 2048, 5000, 65536, 300007}) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt16}) {
      ExpectSelects(MixedArray(dtype, {n}), 0, {n / 2});
      ExpectSelects(MixedArray(dtype, {n}), 0, {(n - 1) / 2, n / 2, 0, n - 1});
    }
    std::vector<int64_t> many;
    for (int64_t i = 0; i < 20; ++i) many.push_back((i * 7919) % n);
    ExpectSelects(MixedArray(DType::kFloat32, {n}), 0, many);
  }
  ExpectSelects(MixedArray(DType::kFloat32, {300, 1500}), 1, {749, 750});
  ExpectSelects(MixedArray(DType::kInt64, {9, 40000}), 1, {3, 39999, 20000, 20001, 5, 6, 7, 8});
}

TEST_F(SelectTest, SelectsAlongAnyAxisOfAnyLayout) {
  for (int axis : {0, 1, 2}) {
    ExpectSelects(MixedArray(DType::kInt32, {4, 70, 9}), axis, {1, 0, -1});
    ExpectSelects(Transposed(MixedArray(DType::kInt32, {4, 9, 70})), axis, {1, 0, -1});
    ExpectSelects(Reversed(MixedArray(DType::kInt32, {4, 70, 9}), axis), axis, {1, 0, -1});
  }
  ExpectSelects(MixedArray(DType::kFloat32, {2100, 5}), 0, {1050, 1049});
  ExpectSelects(Reversed(Transposed(MixedArray(DType::kFloat64, {5, 2100})), 0), 0, {1050, 1049});
}

TEST_F(SelectTest, SlicesHaveSeparateRanks) {
  for (int64_t n : {50, 4000}) {
    const HostArray input = MixedArray(DType::kFloat64, {6, n});
    const HostArray ranks = Make(DType::kInt32, {6, 2}, [&](int64_t i) {
      return static_cast<double>(i % 2 == 0 ? i * 3 : n - 1 - i);
    });
    auto result = harness().Compute(SelectOf(1), {harness().Put(input), harness().Put(ranks)});
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    auto slices = Slices(input, 1);
    for (int64_t i = 0; i < 12; ++i) {
      auto& slice = slices[i / 2];
      std::stable_sort(slice.begin(), slice.end(), Before);
      ASSERT_PRED2(Same, got.At(i), slice[static_cast<size_t>(ranks.At(i).real())])
          << n << " " << i;
    }
    harness().Reset();
  }
}

TEST_F(SelectTest, ExtremesNanAndZerosAreOrdered) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const std::vector<double> values = {nan, 1, inf, -inf, -nan, -2, 1, 5, -inf, nan};
    const HostArray input =
        Make(dtype, {5000}, [&](int64_t i) { return Value(values[i * 7 % 10]); });
    ExpectSelects(input, 0, {0, 999, 1000, 1500, 2500, 3499, 3500, 4999});
    ExpectPartitions(input, 0, {1000, 3500});
    const HostArray zeros = Make(dtype, {4000}, [](int64_t i) { return i % 2 == 0 ? 0.0 : -0.0; });
    auto result =
        harness().Compute(SelectOf(0), {harness().Put(zeros), harness().Put(Ranks({0, 2000}))});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(std::signbit(harness().Get(*result).At(0).real()));
    EXPECT_FALSE(std::signbit(harness().Get(*result).At(1).real()));
  }
  HostArray large = Make(DType::kUInt64, {2000}, [](int64_t) { return 0; });
  const uint64_t unsigned_values[] = {~0ull, 1ull << 63, 5};
  for (int64_t i = 0; i < 2000; ++i)
    std::memcpy(large.buffer.data() + 8 * i, &unsigned_values[i % 3], 8);
  auto bits = [&](const HostArray& input, int64_t rank) {
    auto result =
        harness().Compute(SelectOf(0), {harness().Put(input), harness().Put(Ranks({rank}))});
    EXPECT_TRUE(result.ok()) << result.status();
    uint64_t got = 0;
    if (result.ok()) std::memcpy(&got, harness().Get(*result).buffer.data(), 8);
    return got;
  };
  EXPECT_EQ(bits(large, 0), 5u);
  EXPECT_EQ(bits(large, 1000), 1ull << 63);
  EXPECT_EQ(bits(large, 1999), ~0ull);
  large.info.dtype = DType::kInt64;
  EXPECT_EQ(bits(large, 0), 1ull << 63);
  EXPECT_EQ(bits(large, 1000), ~0ull);
  EXPECT_EQ(bits(large, 1999), 5u);
}

TEST_F(SelectTest, RankOutsideItsAxisFails) {
  for (int64_t n : {10, 5000, 300000}) {
    for (int64_t rank : {n, -n - 1, std::numeric_limits<int64_t>::min()}) {
      auto result = harness().Compute(SelectOf(0), {harness().Put(MixedArray(DType::kFloat32, {n})),
                                                    harness().Put(Ranks({0, rank}))});
      EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << n << " " << rank;
      harness().Reset();
    }
  }
  auto empty = harness().Compute(
      SelectOf(0), {harness().Put(MixedArray(DType::kFloat32, {0})), harness().Put(Ranks({0}))});
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kOutOfRange);
  auto nothing = harness().Compute(
      SelectOf(0), {harness().Put(MixedArray(DType::kFloat32, {0})), harness().Put(Ranks({}))});
  EXPECT_TRUE(nothing.ok()) << nothing.status();
}

TEST_F(SelectTest, PartitionsEveryDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    ExpectPartitions(MixedArray(dtype, {3, 3000}), 1, {1500});
  }
  ExpectPartitions(MixedArray(DType::kFloat16, {40, 3}), 0, {-1, 7});
}

TEST_F(SelectTest, PartitionsEveryLengthAndLayout) {
  for (int64_t n : {1, 2, 1024, 1025, 5000, 100003}) {
    ExpectPartitions(MixedArray(DType::kFloat32, {n}), 0, {n / 2});
    ExpectPartitions(MixedArray(DType::kInt32, {n}), 0, {0, n - 1, n / 3, n / 2});
    std::vector<int64_t> many;
    for (int64_t i = 0; i < 12; ++i) many.push_back((i * 7919) % n);
    ExpectPartitions(MixedArray(DType::kFloat64, {n}), 0, many);
  }
  ExpectPartitions(MixedArray(DType::kFloat32, {300, 1500}), 1, {749, 750});
  ExpectPartitions(MixedArray(DType::kFloat32, {2100, 5}), 0, {1050});
  ExpectPartitions(Reversed(Transposed(MixedArray(DType::kFloat64, {5, 2100})), 0), 0, {1050, 3});
}

TEST_F(SelectTest, LaterKeysBreakTies) {
  for (int64_t n : {1, 10, 1000, 1025, 20000}) {
    const HostArray second = MixedArray(DType::kFloat32, {2, n}, 40);
    const HostArray third = Transposed(MixedArray(DType::kComplex64, {n, 2}, 20));
    const HostArray keys[] = {Make(DType::kInt8, {2, n}, [](int64_t i) { return Mixed(i, 4); }),
                              second, third};
    for (bool descending : {false, true}) {
      v1::Operation operation;
      auto* sort = operation.mutable_sort();
      sort->mutable_input()->set_handle(1);
      sort->add_more_keys()->set_handle(2);
      sort->add_more_keys()->set_handle(3);
      sort->set_axis(1);
      sort->set_indices(true);
      sort->set_descending(descending);
      operation.add_outputs()->set_handle(100);
      std::vector<DeviceArray> placed;
      for (const HostArray& key : keys) placed.push_back(harness().Put(key));
      auto result = harness().Compute(operation, placed);
      ASSERT_TRUE(result.ok()) << result.status();
      const auto got = Slices(harness().Get(*result), 1);
      for (size_t row = 0; row < 2; ++row) {
        std::vector<std::vector<Value>> of_row;
        for (const HostArray& key : keys) of_row.push_back(Slices(key, 1)[row]);
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          for (const auto& key : of_row) {
            Value x = key[a], y = key[b];
            if (IsNan(x) != IsNan(y)) return IsNan(y);
            if (IsNan(x)) continue;
            if (descending) std::swap(x, y);
            if (Before(x, y)) return true;
            if (Before(y, x)) return false;
          }
          return false;
        });
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(got[row][i].real(), order[i]) << n << " row " << row << " " << i;
      }
      harness().Reset();
    }
  }
}

}  // namespace
}  // namespace stride::conformance
