#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/conformance/device/harness.h"

// GroupReduce and Histogram.
namespace stride::conformance {
namespace {

v1::Operation GroupOf(const std::string& function, int64_t num_groups, int axis = 0) {
  v1::Operation operation;
  operation.mutable_group_reduce()->set_function(function);
  operation.mutable_group_reduce()->mutable_values()->set_handle(1);
  operation.mutable_group_reduce()->mutable_groups()->set_handle(2);
  operation.mutable_group_reduce()->set_num_groups(num_groups);
  operation.mutable_group_reduce()->set_axis(axis);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation UniformOf(int64_t count, double low, double high, bool weighted = false) {
  v1::Operation operation;
  auto* histogram = operation.mutable_histogram();
  histogram->mutable_input()->set_handle(1);
  histogram->mutable_uniform()->set_count(count);
  histogram->mutable_uniform()->set_low(low);
  histogram->mutable_uniform()->set_high(high);
  if (weighted) histogram->mutable_weights()->set_handle(3);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation EdgesOf(bool weighted = false) {
  v1::Operation operation;
  operation.mutable_histogram()->mutable_input()->set_handle(1);
  operation.mutable_histogram()->mutable_edges()->set_handle(2);
  if (weighted) operation.mutable_histogram()->mutable_weights()->set_handle(3);
  operation.add_outputs()->set_handle(100);
  return operation;
}

int64_t Mixed(int64_t i, int64_t n) {
  return static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 33) % n;
}

class GroupTest : public DeviceTest {
 protected:
  HostArray Compute(const v1::Operation& operation, const std::vector<HostArray>& inputs) {
    harness().Reset();
    std::vector<DeviceArray> placed;
    for (const HostArray& input : inputs) placed.push_back(harness().Put(input));
    auto result = harness().Compute(operation, placed);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result) : HostArray{Contiguous(DType::kBool, {0}), ""};
  }
  // Assignments of elements to groups: few, many, most in one.
  static HostArray Groups(DType dtype, int64_t n, int64_t groups, bool skewed = false) {
    return Make(dtype, {n}, [=](int64_t i) {
      return Value(static_cast<double>(skewed && i % 50 != 0 ? groups / 2 : Mixed(i, groups)));
    });
  }
};

using Combine = std::function<double(double, double)>;

TEST_F(GroupTest, CombinesEachGroupInOrder) {
  struct Case {
    std::string name;
    Combine combine;
  };
  // Sums of small integers are exact in any grouping; the last element shows the order.
  const Case cases[] = {{"add", [](double a, double b) { return a + b; }},
                        {"maximum", [](double a, double b) { return std::max(a, b); }},
                        {"fmin", [](double a, double b) { return std::min(a, b); }}};
  for (auto [n, groups, columns] : std::vector<std::array<int64_t, 3>>{{0, 3, 2},
                                                                       {1, 1, 1},
                                                                       {7, 100, 3},
                                                                       {5000, 5, 1},
                                                                       {5000, 5, 7},
                                                                       {60000, 300, 1},
                                                                       {60000, 50000, 1},
                                                                       {3000, 2000, 30},
                                                                       {40, 6, 5000}}) {
    for (bool skewed : {false, true}) {
      const HostArray values = Make(DType::kFloat64, {n, columns}, [&](int64_t i) {
        return Value(static_cast<double>(Mixed(i + 11, 1000) - 500));
      });
      const HostArray which = Groups(DType::kInt32, n, groups, skewed);
      for (const Case& one : cases) {
        const HostArray got = Compute(GroupOf(one.name, groups), {values, which});
        ASSERT_EQ(got.info.shape, (std::vector<int64_t>{groups, columns}));
        std::vector<double> expected(groups * columns);
        std::vector<bool> some(groups * columns);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t g = static_cast<int64_t>(which.At(i).real());
          for (int64_t k = 0; k < columns; ++k) {
            const double x = values.At(i * columns + k).real();
            double& to = expected[g * columns + k];
            to = some[g * columns + k] ? one.combine(to, x) : x;
            some[g * columns + k] = true;
          }
        }
        const auto results = got.Values();
        for (size_t k = 0; k < results.size(); ++k) {
          if (some[k]) {
            ASSERT_EQ(results[k].real(), expected[k])
                << one.name << " " << n << " in " << groups << " x " << columns << ", " << k;
          } else if (one.name == "fmin") {
            ASSERT_TRUE(std::isnan(results[k].real()));
          } else {
            ASSERT_EQ(results[k].real(), one.name == "add" ? 0 : -HUGE_VAL);
          }
        }
      }
    }
  }
}

TEST_F(GroupTest, AcceptsAnyAxisLayoutAndType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    const HostArray values =
        Reversed(Transposed(Make(dtype, {6, 40}, [](int64_t i) { return Value(i % 2); })), 0);
    const HostArray which =
        EverySecond(Make(DType::kUInt8, {12}, [](int64_t i) { return Value(i / 2 % 3); }), 0);
    const HostArray got = Compute(GroupOf("maximum", 4, -1), {values, which});
    ASSERT_EQ(got.info.dtype, dtype);
    ASSERT_EQ(got.info.shape, (std::vector<int64_t>{40, 4}));
    for (int64_t r = 0; r < 40; ++r) {
      for (int64_t g = 0; g < 3; ++g) {
        const double a = values.At(r * 6 + g).real(), b = values.At(r * 6 + g + 3).real();
        ASSERT_EQ(got.At(r * 4 + g).real(), std::max(a, b)) << Name(dtype);
      }
    }
  }
  const HostArray small = Make(DType::kUInt8, {300}, [](int64_t) { return Value(255); });
  const HostArray sums = Compute(GroupOf("add", 2), {small, Groups(DType::kInt64, 300, 2)});
  EXPECT_EQ(sums.info.dtype, DType::kUInt64);
  EXPECT_EQ(sums.At(0) + sums.At(1), Value(300 * 255));
}

TEST_F(GroupTest, SumsAreBitIdenticalInEveryRun) {
  const HostArray values = Make(DType::kFloat32, {200000}, [](int64_t i) {
    return Value(static_cast<float>(1.0 / static_cast<double>(i % 977 + 1)));
  });
  for (int64_t groups : {int64_t{3}, int64_t{150000}}) {
    const HostArray which = Groups(DType::kInt32, 200000, groups, true);
    const HostArray first = Compute(GroupOf("add", groups), {values, which});
    const HostArray second = Compute(GroupOf("add", groups), {values, which});
    EXPECT_EQ(first.buffer, second.buffer);
  }
}

TEST_F(GroupTest, ScalarIsTheValueOfAllElements) {
  v1::Operation operation = GroupOf("add", 4);
  operation.mutable_group_reduce()->mutable_values()->mutable_scalar()->set_int_value(1);
  const HostArray which = Groups(DType::kInt32, 1000, 4);
  auto result = harness().Compute(operation, {DeviceArray(), harness().Put(which)});
  ASSERT_TRUE(result.ok()) << result.status();
  const HostArray got = harness().Get(*result);
  EXPECT_EQ(got.info.dtype, DType::kInt64);
  std::vector<Value> expected(4);
  for (int64_t i = 0; i < 1000; ++i) expected[Mixed(i, 4)] += 1.0;
  EXPECT_EQ(got.Values(), expected);
  operation.mutable_group_reduce()->set_data_type(v1::DATA_TYPE_FLOAT16);
  result = harness().Compute(operation, {DeviceArray(), harness().Put(which)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(harness().Get(*result).info.dtype, DType::kFloat16);
  EXPECT_EQ(harness().Get(*result).Values(), expected);
}

TEST_F(GroupTest, ReportsGroupOutOfRange) {
  for (int64_t n : {100, 30000}) {
    for (int64_t wrong : {-1, 20000}) {
      const HostArray values = Make(DType::kInt32, {n}, [](int64_t i) { return Value(i); });
      const HostArray which = Make(DType::kInt64, {n}, [&](int64_t i) {
        return Value(static_cast<double>(i == n / 2 ? wrong : i % 9));
      });
      auto result =
          harness().Compute(GroupOf("add", 20000), {harness().Put(values), harness().Put(which)});
      EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
    }
  }
}

TEST_F(GroupTest, NonCommutativeFunctionsKeepOrder) {
  v1::Function definition;
  auto* ufunc = definition.mutable_ufunc();
  ufunc->add_signatures("float64,float64->float64");
  ufunc->mutable_identity()->set_int_value(0);
  ufunc->mutable_body()->mutable_expression()->set_text("a * 3 - b");
  ufunc->mutable_body()->mutable_expression()->add_parameters("a");
  ufunc->mutable_body()->mutable_expression()->add_parameters("b");
  ASSERT_TRUE(harness().Define(definition, "ordered").ok());
  for (int64_t groups : {4, 700}) {
    const int64_t n = groups * 10;
    const HostArray values =
        Make(DType::kFloat64, {n}, [](int64_t i) { return Value(i % 13 - 6.0); });
    const HostArray which = Groups(DType::kInt32, n, groups);
    const HostArray got = Compute(GroupOf("ordered", groups), {values, which});
    std::vector<double> expected(groups, HUGE_VAL);
    for (int64_t i = 0; i < n; ++i) {
      double& to = expected[Mixed(i, groups)];
      const double x = values.At(i).real();
      to = to == HUGE_VAL ? x : to * 3 - x;
    }
    for (int64_t g = 0; g < groups; ++g)
      ASSERT_EQ(got.At(g).real(), expected[g] == HUGE_VAL ? 0 : expected[g]) << g;
  }
}

// --- histograms ---

// The bin according to the edges; -1 if none.
int64_t BinOf(double x, const std::vector<double>& edges) {
  if (!(x >= edges.front() && x <= edges.back())) return -1;
  const auto above = std::upper_bound(edges.begin(), edges.end(), x);
  return std::min<int64_t>(above - edges.begin(), static_cast<int64_t>(edges.size()) - 1) - 1;
}

std::vector<double> Linspace(double low, double high, int64_t count, bool single) {
  std::vector<double> edges;
  const double step = (high - low) / static_cast<double>(count);
  for (int64_t i = 0; i <= count; ++i) {
    const double edge = i == count ? high : static_cast<double>(i) * step + low;
    edges.push_back(single ? static_cast<float>(edge) : edge);
  }
  return edges;
}

TEST_F(GroupTest, CountsBins) {
  const double nan = std::nan("");
  for (auto [n, bins] : std::vector<std::array<int64_t, 2>>{
           {0, 4}, {1, 1}, {1000, 10}, {100000, 7}, {100000, 4096}, {50000, 30000}}) {
    for (DType dtype : {DType::kFloat64, DType::kFloat32, DType::kInt16}) {
      const bool is_float = IsFloat(dtype);
      HostArray input = Make(dtype, {n}, [&](int64_t i) -> Value {
        if (is_float && i % 100 == 7) return nan;
        const double x = static_cast<double>(Mixed(i, 3001)) / 10 - 50;
        return is_float ? static_cast<float>(x) : std::floor(x);
      });
      const auto edges = Linspace(0, 200, bins, dtype == DType::kFloat32);
      std::vector<Value> expected(bins);
      for (const Value& x : input.Values()) {
        const int64_t bin = BinOf(x.real(), edges);
        if (bin >= 0) expected[bin] += 1.0;
      }
      const HostArray got = Compute(UniformOf(bins, 0, 200), {input});
      ASSERT_EQ(got.info.dtype, DType::kInt64);
      ASSERT_EQ(got.Values(), expected) << n << " in " << bins << " " << Name(dtype);
      const HostArray given =
          Make(DType::kFloat64, {bins + 1}, [&](int64_t i) { return Value(edges[i]); });
      ASSERT_EQ(Compute(EdgesOf(), {input, given}).Values(), expected)
          << n << " in " << bins << " edges, " << Name(dtype);
    }
  }
}

TEST_F(GroupTest, EdgesMayRepeatAndEqualElements) {
  const std::vector<double> edges = {0, 1, 1, 2, 2};
  const std::vector<double> values = {-1, 0, 0.5, 1, 1, 1.5, 2, 2.5};
  const HostArray got = Compute(
      EdgesOf(), {Make(DType::kFloat64, {2, 4}, [&](int64_t i) { return Value(values[i]); }),
                  Make(DType::kFloat64, {5}, [&](int64_t i) { return Value(edges[i]); })});
  EXPECT_EQ(got.Values(), (std::vector<Value>{2, 0, 3, 1}));
  // Bins too narrow to be found by division.
  const double next = std::nextafter(1.0, 2.0);
  const HostArray narrow =
      Make(DType::kFloat64, {2}, [&](int64_t i) { return Value(i == 0 ? 1.0 : next); });
  const auto counts = Compute(UniformOf(1000, 1, next), {narrow}).Values();
  Value sum = 0;
  for (const Value& count : counts) sum += count;
  EXPECT_EQ(sum, Value(2));
  EXPECT_EQ(counts.back(), Value(1));
}

TEST_F(GroupTest, SumsWeights) {
  for (auto [n, bins] :
       std::vector<std::array<int64_t, 2>>{{1000, 10}, {100000, 5}, {60000, 20000}}) {
    const HostArray input = Transposed(Make(DType::kFloat64, {n / 10, 10}, [](int64_t i) {
      return Value(static_cast<double>(Mixed(i, 1000)) / 4 - 20);
    }));
    const auto edges = Linspace(0, 200, bins, false);
    for (DType dtype : {DType::kFloat32, DType::kInt8, DType::kComplex64}) {
      const HostArray weights =
          Make(dtype, {10, n / 10}, [](int64_t i) { return Value(Mixed(i, 7)); });
      std::vector<Value> expected(bins);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t bin = BinOf(input.At(i).real(), edges);
        if (bin >= 0) expected[bin] += weights.At(i);
      }
      const HostArray got = Compute(UniformOf(bins, 0, 200, true), {input, weights});
      EXPECT_EQ(got.info.dtype, dtype == DType::kInt8 ? DType::kFloat64 : dtype);
      ASSERT_EQ(got.Values(), expected) << n << " in " << bins;
      const HostArray given =
          Make(DType::kFloat64, {bins + 1}, [&](int64_t i) { return Value(edges[i]); });
      ASSERT_EQ(Compute(EdgesOf(true), {input, given, weights}).Values(), expected);
    }
  }
}

}  // namespace
}  // namespace stride::conformance
