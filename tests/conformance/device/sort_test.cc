#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

v1::Operation SortOf(int axis, bool descending, bool indices) {
  v1::Operation operation;
  operation.mutable_sort()->mutable_input()->set_handle(1);
  operation.mutable_sort()->set_axis(axis);
  operation.mutable_sort()->set_descending(descending);
  operation.mutable_sort()->set_indices(indices);
  operation.add_outputs()->set_handle(100);
  return operation;
}

bool IsNan(Value v) { return std::isnan(v.real()) || std::isnan(v.imag()); }

// NaN last either way.
bool Before(Value a, Value b, bool descending) {
  if (IsNan(a) || IsNan(b)) return !IsNan(a);
  if (descending) std::swap(a, b);
  return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
}

class SortTest : public DeviceTest {
 protected:
  static Value Mixed(int64_t i, int64_t range) {
    return static_cast<double>(
        static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 33) % range);
  }
  // Sort and argsort in both directions, compared with std::stable_sort.
  void Expect(const HostArray& input, int axis) {
    const DeviceArray placed = harness().Put(input);
    const auto& shape = input.info.shape;
    const auto values = input.Values();
    int64_t inner = 1, outer = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    const int64_t n = shape[axis];
    for (bool descending : {false, true}) {
      auto sorted = harness().Compute(SortOf(axis, descending, false), {placed});
      ASSERT_TRUE(sorted.ok()) << sorted.status();
      auto places = harness().Compute(SortOf(axis, descending, true), {placed});
      ASSERT_TRUE(places.ok()) << places.status();
      const HostArray got = harness().Get(*sorted), at = harness().Get(*places);
      ASSERT_EQ(got.info.dtype, input.info.dtype);
      ASSERT_EQ(at.info.dtype, DType::kInt64);
      const auto got_values = got.Values(), at_values = at.Values();
      std::vector<int64_t> order(n);
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t k = 0; k < inner; ++k) {
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return Before(values[(o * n + a) * inner + k], values[(o * n + b) * inner + k],
                          descending);
          });
          for (int64_t i = 0; i < n; ++i) {
            const int64_t place = (o * n + i) * inner + k;
            const Value expected = values[(o * n + order[i]) * inner + k];
            ASSERT_EQ(at_values[place].real(), order[i])
                << Name(input.info.dtype) << " " << i << " of " << n;
            if (!IsNan(expected)) {
              ASSERT_EQ(got_values[place], expected)
                  << Name(input.info.dtype) << " " << i << " of " << n;
            } else {
              ASSERT_TRUE(IsNan(got_values[place]));
            }
          }
        }
      }
    }
    harness().Reset();
  }
};

TEST_F(SortTest, SortsEveryDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    const int64_t range = IsBool(dtype) ? 2 : 100;
    const int64_t less = IsBool(dtype) || IsUnsigned(dtype) ? 0 : 50;
    // By merges, and on a GPU also by digits.
    for (int64_t n : {3000, 5000}) {
      Expect(Make(dtype, {2, n},
                  [&](int64_t i) {
                    Value v = Mixed(i, range) - static_cast<double>(less);
                    if (IsComplex(dtype)) v += Value(0, Mixed(i * 3 + 1, 4).real());
                    return v;
                  }),
             1);
    }
  }
}

TEST_F(SortTest, SortsEveryLength) {
  for (int64_t n :
       {0, 1, 2, 3, 4, 31, 32, 33, 1000, 1023, 1024, 1025, 2048, 2049, 5000, 65536, 300007}) {
    Expect(Make(DType::kFloat32, {n}, [&](int64_t i) { return Mixed(i, n / 2 + 1); }), 0);
  }
}

TEST_F(SortTest, SortsAlongAnyAxisOfAnyLayout) {
  auto make = [](std::vector<int64_t> shape) {
    return Make(DType::kInt32, std::move(shape), [](int64_t i) { return Mixed(i, 20); });
  };
  for (int axis : {0, 1, 2}) {
    Expect(make({4, 70, 9}), axis);
    Expect(Transposed(make({4, 9, 70})), axis);
    Expect(Reversed(make({4, 70, 9}), axis), axis);
  }
  Expect(make({2100, 5}), 0);
}

TEST_F(SortTest, NanIsLastAndZerosAreEqual) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const std::vector<double> values = {nan, 1, -0.0, 0.0, inf, -inf, nan, -2, 0.0, -0.0, 1, 5};
    Expect(Make(dtype, {12}, [&](int64_t i) { return Value(values[i]); }), 0);
    Expect(Make(dtype, {5000}, [&](int64_t i) { return Value(values[i * 7 % 12]); }), 0);
  }
  Expect(Make(DType::kComplex128, {500},
              [&](int64_t i) {
                return i % 7 == 0 ? Value(nan, nan)
                                  : Mixed(i, 9) + Value(0, Mixed(i + 5, 3).real());
              }),
         0);
  // Stable to the sign of zero.
  const HostArray zeros =
      Make(DType::kFloat64, {4}, [](int64_t i) { return i % 2 == 0 ? -0.0 : 0.0; });
  auto sorted = harness().Compute(SortOf(0, true, false), {harness().Put(zeros)});
  ASSERT_TRUE(sorted.ok()) << sorted.status();
  const HostArray got = harness().Get(*sorted);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(std::signbit(got.At(i).real()), i % 2 == 0) << i;
}

TEST_F(SortTest, ExtremeIntegersKeepTheirOrder) {
  HostArray array = Make(DType::kUInt64, {3}, [](int64_t) { return 0; });
  const uint64_t values[] = {~0ull, 1ull << 63, 5};
  std::memcpy(array.buffer.data(), values, sizeof(values));
  auto places = harness().Compute(SortOf(0, false, true), {harness().Put(array)});
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(harness().Get(*places).Values(), (std::vector<Value>{2, 1, 0}));
  array.info.dtype = DType::kInt64;
  places = harness().Compute(SortOf(0, false, true), {harness().Put(array)});
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(harness().Get(*places).Values(), (std::vector<Value>{1, 0, 2}));
}

TEST_F(SortTest, SearchesASortedArray) {
  auto search = [&](const HostArray& sorted, const HostArray& values, bool right) {
    v1::Operation operation;
    operation.mutable_search()->mutable_sorted()->set_handle(1);
    operation.mutable_search()->mutable_values()->set_handle(2);
    operation.mutable_search()->set_right(right);
    operation.add_outputs()->set_handle(100);
    auto result = harness().Compute(operation, {harness().Put(sorted), harness().Put(values)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result).Values() : std::vector<Value>();
  };
  const HostArray sorted = Make(DType::kInt32, {1000}, [](int64_t i) { return Value(i / 3); });
  const HostArray values =
      Make(DType::kFloat64, {50, 20}, [](int64_t i) { return Value(i * 0.5 - 10); });
  for (bool right : {false, true}) {
    const auto got = search(sorted, Transposed(values), right);
    const auto in = sorted.Values(), wanted = Transposed(values).Values();
    for (size_t i = 0; i < got.size(); ++i) {
      auto less = [](Value a, Value b) { return a.real() < b.real(); };
      const auto at = right ? std::upper_bound(in.begin(), in.end(), wanted[i], less)
                            : std::lower_bound(in.begin(), in.end(), wanted[i], less);
      ASSERT_EQ(got[i].real(), at - in.begin()) << wanted[i];
    }
  }
  const double nan = std::nan("");
  const HostArray with_nan = Make(DType::kFloat32, {5}, [&](int64_t i) { return i < 3 ? i : nan; });
  const HostArray probe =
      Make(DType::kFloat32, {3}, [&](int64_t i) { return i == 0 ? nan : i * 10 - 9; });
  EXPECT_EQ(search(with_nan, probe, false), (std::vector<Value>{3, 1, 3}));
  EXPECT_EQ(search(with_nan, probe, true), (std::vector<Value>{5, 2, 3}));
  EXPECT_EQ(search(Make(DType::kInt8, {0}, [](int64_t) { return 0; }), probe, true),
            (std::vector<Value>{0, 0, 0}));
}

TEST_F(SortTest, TopKIsThePrefixOfTheSortedRow) {
  struct Case {
    std::vector<int64_t> shape;
    int axis;
    int64_t k;
  };
  for (const Case& one : std::vector<Case>{{{1}, 0, 1},
                                           {{1000}, 0, 1000},
                                           {{3, 1025}, 1, 5},
                                           {{200000}, 0, 10},
                                           {{100000}, 0, 1024},
                                           {{3, 40000}, 1, 90},
                                           {{20000}, 0, 512},
                                           {{5000}, 0, 600},
                                           {{70, 2100, 2}, 1, 40},
                                           {{3000, 4}, 0, 1}}) {
    for (DType dtype : {DType::kFloat32, DType::kInt8, DType::kFloat16, DType::kComplex128}) {
      for (bool smallest : {false, true}) {
        const HostArray input = Make(dtype, one.shape, [&](int64_t i) {
          return i % 97 == 3 && IsFloat(dtype) ? Value(std::nan("")) : Mixed(i, 100);
        });
        const DeviceArray placed = harness().Put(input);
        v1::Operation top;
        top.mutable_top_k()->mutable_input()->set_handle(1);
        top.mutable_top_k()->set_axis(one.axis);
        top.mutable_top_k()->set_k(one.k);
        top.mutable_top_k()->set_smallest(smallest);
        top.add_outputs()->set_handle(100);
        top.add_outputs()->set_handle(101);
        auto results = harness().ComputeAll(top, {placed});
        ASSERT_TRUE(results.ok()) << results.status();
        auto order = harness().Compute(SortOf(one.axis, !smallest, true), {placed});
        ASSERT_TRUE(order.ok()) << order.status();
        const HostArray values = harness().Get((*results)[0]), at = harness().Get((*results)[1]);
        const auto wanted = harness().Get(*order).Values(), in = input.Values();
        ASSERT_EQ(values.info.dtype, dtype);
        ASSERT_EQ(values.info.shape[one.axis], one.k);
        int64_t inner = 1;
        for (size_t i = one.axis + 1; i < one.shape.size(); ++i) inner *= one.shape[i];
        const int64_t n = one.shape[one.axis];
        const auto got = at.Values(), got_values = values.Values();
        for (int64_t r = 0; r < static_cast<int64_t>(in.size()) / n; ++r) {
          const int64_t outer = r / inner, column = r % inner;
          for (int64_t i = 0; i < one.k; ++i) {
            const int64_t place = (outer * one.k + i) * inner + column;
            const Value expected = wanted[(outer * n + i) * inner + column];
            ASSERT_EQ(got[place], expected) << n << " " << one.k << " " << i;
            const Value value =
                in[(outer * n + static_cast<int64_t>(expected.real())) * inner + column];
            if (!IsNan(value)) {
              ASSERT_EQ(got_values[place], value);
            }
          }
        }
        harness().Reset();
      }
    }
  }
}

// The unique values of an array as a client composes them: sort, compare neighbours, count,
// compress.
TEST_F(SortTest, UniqueFromSortCompareCountCompress) {
  const HostArray input = Make(DType::kFloat32, {5000}, [](int64_t i) { return Mixed(i, 300); });
  auto sorted = harness().Compute(SortOf(0, false, false), {harness().Put(input)});
  ASSERT_TRUE(sorted.ok()) << sorted.status();
  DeviceArray first = harness().Put(Make(DType::kBool, {5000}, [](int64_t) { return 1; }));
  DeviceArray left = *sorted, right = *sorted, rest = first;
  for (DeviceArray* view : {&left, &right, &rest}) view->info.shape = {4999};
  right.info.offset += 4;
  rest.info.offset += 1;
  ASSERT_TRUE(harness().Compute(UfuncOf("not_equal", 2), {left, right}, &rest).ok());
  auto count = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_COUNT_NONZERO, {}), {first});
  ASSERT_TRUE(count.ok()) << count.status();
  const int64_t n = static_cast<int64_t>(harness().Get(*count).At(0).real());
  v1::Operation compress;
  compress.mutable_compress()->mutable_input()->set_handle(1);
  compress.mutable_compress()->mutable_mask()->set_handle(2);
  compress.mutable_compress()->set_count(n);
  compress.add_outputs()->set_handle(3);
  auto unique = harness().Compute(compress, {*sorted, first});
  ASSERT_TRUE(unique.ok()) << unique.status();
  std::vector<double> expected;
  for (const Value& v : input.Values()) expected.push_back(v.real());
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  const HostArray got = harness().Get(*unique);
  ASSERT_EQ(n, static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got.At(i).real(), expected[i]);
}

}  // namespace
}  // namespace stride::conformance
