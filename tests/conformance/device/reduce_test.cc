#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class ReduceTest : public DeviceTest {
 protected:
  DeviceArray Reduce(v1::Reduction::Function function, std::vector<int32_t> axes,
                     const HostArray& input) {
    auto result = harness().Compute(ReductionOf(function, std::move(axes)), {harness().Put(input)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : DeviceArray();
  }
  static HostArray Counting(DType dtype, std::vector<int64_t> shape) {
    return Make(dtype, std::move(shape), [](int64_t i) { return Value(i * 37 % 101 - 50); });
  }
};

TEST_F(ReduceTest, SumsEveryLength) {
  for (int64_t n : {0, 1, 2, 31, 33, 1000, 4097, 100000, 3000001}) {
    const HostArray input = Counting(DType::kInt32, {n});
    double expected = 0;
    for (Value value : input.Values()) expected += value.real();
    const HostArray got = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {}, input));
    ASSERT_EQ(got.info.dtype, DType::kInt64);
    ASSERT_EQ(got.At(0).real(), expected) << n << " elements";
    harness().Reset();
  }
}

TEST_F(ReduceTest, SumsRowsAndColumns) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{7, 1000}, {1000, 7}, {300, 513}, {1, 4000}, {4000, 1}}) {
    const HostArray input = Counting(DType::kFloat64, {rows, columns});
    const HostArray by_row = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {1}, input));
    const HostArray by_column = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {0}, input));
    for (int64_t r = 0; r < rows; ++r) {
      double expected = 0;
      for (int64_t c = 0; c < columns; ++c) expected += input.At(r * columns + c).real();
      ASSERT_EQ(by_row.At(r).real(), expected) << rows << "x" << columns << " row " << r;
    }
    for (int64_t c = 0; c < columns; ++c) {
      double expected = 0;
      for (int64_t r = 0; r < rows; ++r) expected += input.At(r * columns + c).real();
      ASSERT_EQ(by_column.At(c).real(), expected) << rows << "x" << columns << " column " << c;
    }
    harness().Reset();
  }
}

TEST_F(ReduceTest, ReducesViews) {
  const HostArray input = Transposed(Reversed(Counting(DType::kFloat64, {4, 30, 20}), 1));
  const HostArray got = harness().Get(Reduce(v1::Reduction::FUNCTION_SUM, {1}, input));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t k = 0; k < 30; ++k) {
      double expected = 0;
      for (int64_t j = 0; j < 20; ++j) expected += input.At((i * 20 + j) * 30 + k).real();
      ASSERT_EQ(got.At(i * 30 + k).real(), expected) << i << ", " << k;
    }
  }
}

TEST_F(ReduceTest, FindsExtremesAndTheirIndices) {
  HostArray input = Make(DType::kFloat32, {50000}, [](int64_t i) { return Value(i % 1000); });
  Store(DType::kFloat32, 5000, input.buffer.data() + 4 * 31234);
  Store(DType::kFloat32, 5000, input.buffer.data() + 4 * 41234);
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_MAX, {}, input)).At(0), Value(5000));
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_MIN, {}, input)).At(0), Value(0));
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_ARGMAX, {}, input)).At(0), Value(31234));
  EXPECT_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_ARGMIN, {}, input)).At(0), Value(0));
}

// Reduces `values` in order. Positions count from 0; NaN propagates.
Value Expected(v1::Reduction::Function function, const std::vector<Value>& values) {
  Value result = 0;
  size_t best = 0;
  auto is_better = [&](Value value, Value than, bool less) {
    if (std::isnan(than.real())) return false;
    if (std::isnan(value.real())) return true;
    return less ? value.real() < than.real() : value.real() > than.real();
  };
  const bool less =
      function == v1::Reduction::FUNCTION_MIN || function == v1::Reduction::FUNCTION_ARGMIN;
  for (size_t i = 0; i < values.size(); ++i) {
    result += values[i];
    if (is_better(values[i], values[best], less)) best = i;
  }
  switch (function) {
    case v1::Reduction::FUNCTION_SUM:
      return result;
    case v1::Reduction::FUNCTION_ANY:
      return std::any_of(values.begin(), values.end(), [](Value v) { return v != 0.0; });
    case v1::Reduction::FUNCTION_ALL:
      return std::all_of(values.begin(), values.end(), [](Value v) { return v != 0.0; });
    case v1::Reduction::FUNCTION_ARGMIN:
    case v1::Reduction::FUNCTION_ARGMAX:
      return static_cast<double>(best);
    default:
      return values[best];
  }
}

// The rows (or columns) of a matrix, each reduced.
std::vector<Value> Expected(v1::Reduction::Function function, const HostArray& input, int axis) {
  const int64_t rows = input.info.shape[0], columns = input.info.shape[1];
  std::vector<Value> results;
  for (int64_t i = 0; i < (axis == 0 ? columns : rows); ++i) {
    std::vector<Value> values;
    for (int64_t j = 0; j < (axis == 0 ? rows : columns); ++j)
      values.push_back(input.At(axis == 0 ? j * columns + i : i * columns + j));
    results.push_back(Expected(function, values));
  }
  return results;
}

std::string Bits(const std::vector<Value>& values) {
  std::string text;
  for (Value value : values)
    text += (std::isnan(value.real()) ? "nan" : std::to_string(value.real())) + " ";
  return text;
}

// Sums stay small enough for every type.
HostArray Small(DType dtype, std::vector<int64_t> shape) {
  return Make(dtype, std::move(shape), [dtype](int64_t i) {
    if (dtype == DType::kBool) return Value(i % 3 == 1);
    const int64_t value = i * 37 % 23;
    return Value(static_cast<double>(IsUnsigned(dtype) ? value : value - 11));
  });
}

constexpr DType kNumbers[] = {DType::kBool,   DType::kInt8,    DType::kInt16,    DType::kInt32,
                              DType::kInt64,  DType::kUInt8,   DType::kUInt16,   DType::kUInt32,
                              DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                              DType::kFloat64};

TEST_F(ReduceTest, EveryTypeInRowsAndColumns) {
  for (DType dtype : kNumbers) {
    const auto third =
        dtype == DType::kBool ? v1::Reduction::FUNCTION_ANY : v1::Reduction::FUNCTION_ARGMIN;
    for (auto function : {v1::Reduction::FUNCTION_SUM, v1::Reduction::FUNCTION_MAX, third}) {
      // Around the number of values combined side by side, and that of a run.
      for (auto [rows, columns] : {std::pair<int64_t, int64_t>{3, 1},
                                   {2, 31},
                                   {5, 33},
                                   {3, 513},
                                   {131, 1055},
                                   {1100, 19}}) {
        const HostArray input = Small(dtype, {rows, columns});
        for (int axis : {0, 1}) {
          const HostArray got = harness().Get(Reduce(function, {axis}, input));
          ASSERT_EQ(Bits(got.Values()), Bits(Expected(function, input, axis)))
              << Name(dtype) << " " << function << " of " << rows << "x" << columns << " along "
              << axis;
        }
        harness().Reset();
      }
    }
  }
}

TEST_F(ReduceTest, EveryFunctionOfViews) {
  for (DType dtype : {DType::kInt32, DType::kFloat64}) {
    for (auto function : {v1::Reduction::FUNCTION_MIN, v1::Reduction::FUNCTION_ARGMAX,
                          v1::Reduction::FUNCTION_ALL, v1::Reduction::FUNCTION_SUM}) {
      const HostArray input = Small(dtype, {70, 1066});
      for (const HostArray& view :
           {Transposed(input), Reversed(input, 0), Reversed(input, 1), EverySecond(input, 0),
            EverySecond(input, 1), Repeated(Small(dtype, {1, 1066}), {70, 1066})}) {
        for (int axis : {0, 1}) {
          const HostArray got = harness().Get(Reduce(function, {axis}, view));
          ASSERT_EQ(Bits(got.Values()), Bits(Expected(function, view, axis)))
              << Name(dtype) << " " << function << " along " << axis;
        }
        harness().Reset();
      }
    }
  }
}

TEST_F(ReduceTest, NaNPropagatesFromAnyPosition) {
  const double nan = std::nan("");
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (auto function : {v1::Reduction::FUNCTION_MIN, v1::Reduction::FUNCTION_MAX,
                          v1::Reduction::FUNCTION_ARGMIN, v1::Reduction::FUNCTION_ARGMAX}) {
      for (int64_t place : {0, 5, 31, 32, 47, 511, 512, 700, 1052}) {
        for (int axis : {0, 1}) {
          // One of three has two NaNs of either sign in the middle, the others have none.
          const int64_t step = axis == 0 ? 35 : 1, start = axis == 0 ? 17 : 1053;
          HostArray input = axis == 0 ? Small(dtype, {1053, 35}) : Small(dtype, {3, 1053});
          for (auto [where, value] : {std::pair<int64_t, double>{1052, nan}, {place, -nan}}) {
            Store(dtype, value, input.buffer.data() + (start + where * step) * ItemSize(dtype));
          }
          const HostArray got = harness().Get(Reduce(function, {axis}, input));
          ASSERT_EQ(Bits(got.Values()), Bits(Expected(function, input, axis)))
              << Name(dtype) << " " << function << " at " << place << " along " << axis;
          harness().Reset();
        }
      }
    }
  }
}

TEST_F(ReduceTest, IndexIsTheFirstOfEquals) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int64_t n : {1, 31, 700, 70000}) {
      for (const auto& value : std::vector<std::function<Value(int64_t)>>{
               [&](int64_t) { return Value(-infinity); }, [&](int64_t) { return Value(infinity); },
               [](int64_t i) { return Value(static_cast<double>(i / 3)); },
               [](int64_t i) { return Value(i % 2 == 0 ? 0.0 : -0.0); }}) {
        const HostArray input = Make(dtype, {n, 1}, value);
        for (auto function : {v1::Reduction::FUNCTION_ARGMAX, v1::Reduction::FUNCTION_ARGMIN}) {
          ASSERT_EQ(harness().Get(Reduce(function, {0}, input)).At(0),
                    Expected(function, input, 0)[0])
              << Name(dtype) << " " << n;
        }
        harness().Reset();
      }
    }
  }
}

TEST_F(ReduceTest, MeanAndNormFinishTheirSums) {
  const HostArray input = Make(DType::kFloat64, {40000}, [](int64_t i) { return Value(i % 5); });
  EXPECT_DOUBLE_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_MEAN, {}, input)).At(0).real(),
                   2.0);
  EXPECT_DOUBLE_EQ(harness().Get(Reduce(v1::Reduction::FUNCTION_NORM, {}, input)).At(0).real(),
                   std::sqrt(8000.0 * 30));
}

TEST_F(ReduceTest, RepeatedRunsAreBitIdentical) {
  const HostArray input =
      Make(DType::kFloat32, {1000000}, [](int64_t i) { return Value(1.0f / (i + 1)); });
  const DeviceArray placed = harness().Put(input);
  auto first = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {placed});
  ASSERT_TRUE(first.ok()) << first.status();
  const Value expected = harness().Get(*first).At(0);
  EXPECT_NEAR(expected.real(), 14.392727, 1e-4);
  for (int i = 0; i < 5; ++i) {
    auto again = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {placed});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(harness().Get(*again).At(0), expected);
  }
}

TEST_F(ReduceTest, OperandsOutsideTheirArenaAreRefused) {
  auto array = harness().Put(Counting(DType::kFloat32, {1000}));
  DeviceArray output;
  auto task =
      harness().Prepare(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {array}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_reduce()->mutable_inputs(0)->set_offset(Harness::kArenaBytes - 3996);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_reduce()->mutable_output()->set_offset(Harness::kArenaBytes);
  EXPECT_REFUSED(harness().Run(bad));
  EXPECT_TRUE(harness().Run(*task).ok());
}

// NumPy's `initial=` and `where=`, compared with the host.
TEST_F(ReduceTest, InitialValueAndMask) {
  struct Case {
    v1::Reduction::Function function;
    std::string name;  // a ufunc instead of the function
    bool needs_initial;
    std::function<double(double, double)> combine;
    double identity;
  };
  using R = v1::Reduction;
  const Case cases[] = {
      {R::FUNCTION_SUM, "", false, [](double a, double b) { return a + b; }, 0},
      {R::FUNCTION_MIN, "", true, [](double a, double b) { return std::min(a, b); }, 0},
      {R::FUNCTION_MAX, "", true, [](double a, double b) { return std::max(a, b); }, 0},
      {R::FUNCTION_UNSPECIFIED, "hypot", false, [](double a, double b) { return std::hypot(a, b); },
       0},
      {R::FUNCTION_UNSPECIFIED, "fmax", true, [](double a, double b) { return std::max(a, b); }, 0},
      // In order.
      {R::FUNCTION_UNSPECIFIED, "subtract", true, [](double a, double b) { return a - b; }, 0},
  };
  for (auto [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {3, 7}, {1, 100000}, {300, 40}, {40, 300}, {2, 0}}) {
    for (bool by_columns : {false, true}) {
      const HostArray stored = Counting(DType::kFloat64, {rows, columns});
      // One row is masked as a whole.
      const HostArray mask = Make(DType::kBool, {rows, columns}, [&, c = columns](int64_t i) {
        return Value(i / std::max<int64_t>(c, 1) != 1 && i % 3 != 0);
      });
      for (const Case& one : cases) {
        for (bool masked : {false, true}) {
          for (bool initial : {false, true}) {
            const int64_t reduced = by_columns ? rows : columns, kept = by_columns ? columns : rows;
            if (one.needs_initial && !initial && (masked || reduced == 0)) continue;
            v1::Operation operation = ReductionOf(one.function, {by_columns ? 0 : 1});
            if (!one.name.empty()) operation.mutable_reduction()->set_function_name(one.name);
            if (initial) operation.mutable_reduction()->mutable_initial()->set_float_value(-7);
            std::vector<DeviceArray> inputs = {harness().Put(stored)};
            if (masked) {
              operation.mutable_reduction()->mutable_where()->set_handle(2);
              inputs.push_back(harness().Put(mask));
            }
            auto result = harness().Compute(operation, inputs);
            ASSERT_TRUE(result.ok()) << result.status();
            const HostArray got = harness().Get(*result);
            for (int64_t k = 0; k < kept; ++k) {
              double sum = -7;
              bool some = initial;
              for (int64_t j = 0; j < reduced; ++j) {
                const int64_t at = by_columns ? j * columns + k : k * columns + j;
                if (masked && mask.At(at).real() == 0) continue;
                const double x = stored.At(at).real();
                sum = some ? one.combine(sum, x) : x;
                some = true;
              }
              if (!some) sum = one.identity;
              const double error = one.name == "hypot" ? 1e-10 * (std::abs(sum) + 1) : 0;
              const double x = got.At(k).real();
              ASSERT_NEAR(one.name == "hypot" ? std::abs(x) : x,
                          one.name == "hypot" ? std::abs(sum) : sum, error)
                  << one.function << one.name << " " << masked << initial << " " << rows << "x"
                  << columns << " " << k;
            }
            harness().Reset();
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, MeanCountAllAndAnyAcceptAMask) {
  using R = v1::Reduction;
  for (DType dtype : {DType::kFloat32, DType::kInt16, DType::kComplex128}) {
    const HostArray input = Counting(dtype, {4, 3001});
    // Broadcast: the same elements of each row.
    const HostArray mask =
        Make(DType::kBool, {3001}, [](int64_t i) { return Value(i % 5 == 2 || i == 7); });
    for (R::Function function : {R::FUNCTION_MEAN, R::FUNCTION_NORM, R::FUNCTION_COUNT_NONZERO,
                                 R::FUNCTION_ANY, R::FUNCTION_ALL, R::FUNCTION_PROD}) {
      v1::Operation operation = ReductionOf(function, {1});
      operation.mutable_reduction()->mutable_where()->set_handle(2);
      auto result = harness().Compute(operation, {harness().Put(input), harness().Put(mask)});
      ASSERT_TRUE(result.ok()) << result.status();
      const HostArray got = harness().Get(*result);
      for (int64_t r = 0; r < 4; ++r) {
        double sum = 0, squares = 0, count = 0, nonzero = 0;
        for (int64_t i = 0; i < 3001; ++i) {
          if (mask.At(i).real() == 0) continue;
          const double x = input.At(r * 3001 + i).real();
          sum += x;
          squares += x * x;
          ++count;
          nonzero += x != 0;
        }
        const double expected = function == R::FUNCTION_MEAN            ? sum / count
                                : function == R::FUNCTION_NORM          ? std::sqrt(squares)
                                : function == R::FUNCTION_COUNT_NONZERO ? nonzero
                                : function == R::FUNCTION_ANY           ? nonzero > 0
                                : function == R::FUNCTION_ALL           ? nonzero == count
                                                                        : 0;
        // Floats overflow before they meet a zero.
        if (function == R::FUNCTION_PROD && (nonzero == count || dtype != DType::kInt16)) continue;
        ASSERT_NEAR(got.At(r).real(), expected, 1e-4 * std::abs(expected)) << function << " " << r;
      }
      harness().Reset();
    }
  }
}

TEST_F(ReduceTest, ClientReductionAcceptsInitialAndMask) {
  v1::Function definition;
  auto* reduction = definition.mutable_reduction();
  reduction->add_signatures("int64,int64->int64");
  auto expression = [](v1::FunctionBody* body, const char* text, std::vector<const char*> names) {
    body->mutable_expression()->set_text(text);
    for (const char* name : names) body->mutable_expression()->add_parameters(name);
  };
  expression(reduction->mutable_map(), "a * b", {"a", "b"});
  expression(reduction->mutable_combine(), "a + b", {"a", "b"});
  expression(reduction->mutable_finish(), "a * 2", {"a"});
  ASSERT_TRUE(harness().Define(definition, "twice_dot").ok());
  const HostArray a = Make(DType::kInt64, {1000}, [](int64_t i) { return Value(i % 10); });
  const HostArray mask = Make(DType::kBool, {1000}, [](int64_t i) { return Value(i % 4 == 1); });
  v1::Operation operation;
  operation.mutable_reduction()->set_function_name("twice_dot");
  operation.mutable_reduction()->mutable_input()->set_handle(1);
  operation.mutable_reduction()->add_more_inputs()->set_handle(2);
  operation.mutable_reduction()->mutable_where()->set_handle(3);
  operation.mutable_reduction()->mutable_initial()->set_int_value(100);
  operation.add_outputs()->set_handle(4);
  auto result =
      harness().Compute(operation, {harness().Put(a), harness().Put(a), harness().Put(mask)});
  ASSERT_TRUE(result.ok()) << result.status();
  double sum = 100;
  for (int64_t i = 1; i < 1000; i += 4) sum += static_cast<double>(i % 10 * (i % 10));
  EXPECT_EQ(harness().Get(*result).At(0), Value(2 * sum));
}

// The results of numpy.nansum and its siblings for each row or column of a matrix.
Value WithoutNan(v1::Reduction::Function function, std::vector<Value> values) {
  std::vector<Value> numbers;
  for (Value value : values) {
    if (!std::isnan(value.real()) && !std::isnan(value.imag())) numbers.push_back(value);
  }
  auto before = [](Value a, Value b) {
    return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
  };
  const double nan = std::nan("");
  Value sum = 0, product = 1, squares = 0;
  for (Value value : numbers) {
    sum += value;
    product *= value;
    squares += std::norm(value);
  }
  switch (function) {
    case v1::Reduction::FUNCTION_SUM:
      return sum;
    case v1::Reduction::FUNCTION_PROD:
      return product;
    case v1::Reduction::FUNCTION_NORM:
      return std::sqrt(squares);
    case v1::Reduction::FUNCTION_MEAN:
      return numbers.empty() ? nan : sum / static_cast<double>(numbers.size());
    case v1::Reduction::FUNCTION_MIN:
      return numbers.empty() ? nan : *std::min_element(numbers.begin(), numbers.end(), before);
    case v1::Reduction::FUNCTION_MAX:
      return numbers.empty() ? nan : *std::max_element(numbers.begin(), numbers.end(), before);
    default:
      break;
  }
  if (numbers.empty()) return -1;
  const Value best = function == v1::Reduction::FUNCTION_ARGMIN
                         ? *std::min_element(numbers.begin(), numbers.end(), before)
                         : *std::max_element(numbers.begin(), numbers.end(), before);
  return static_cast<double>(std::find(values.begin(), values.end(), best) - values.begin());
}

constexpr v1::Reduction::Function kOfNumbers[] = {
    v1::Reduction::FUNCTION_SUM,    v1::Reduction::FUNCTION_PROD,  v1::Reduction::FUNCTION_MEAN,
    v1::Reduction::FUNCTION_NORM,   v1::Reduction::FUNCTION_MIN,   v1::Reduction::FUNCTION_MAX,
    v1::Reduction::FUNCTION_ARGMIN, v1::Reduction::FUNCTION_ARGMAX};

class SkipNanTest : public ReduceTest {
 protected:
  // A matrix with some rows of only NaN.
  static HostArray WithNan(DType dtype, int64_t rows, int64_t columns) {
    return Make(dtype, {rows, columns}, [&](int64_t i) {
      if (i / columns % 5 == 3 || i % 3 == 1) return Value(std::nan(""));
      const Value value = i * 7 % 4 == 0 ? 2 : i % 2 == 0 ? -1 : 1;
      return IsComplex(dtype) ? value + Value(0, i % 2 == 0 ? 0 : 1) : value;
    });
  }
  void ExpectSkipped(v1::Reduction::Function function, const HostArray& input, int axis) {
    v1::Operation operation = ReductionOf(function, {axis});
    operation.mutable_reduction()->set_skip_nan(true);
    auto result = harness().Compute(operation, {harness().Put(input)});
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    const int64_t rows = input.info.shape[0], columns = input.info.shape[1];
    const int64_t count = axis == 1 ? rows : columns;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<Value> values;
      for (int64_t j = 0; j < (axis == 1 ? columns : rows); ++j)
        values.push_back(axis == 1 ? input.At(i * columns + j) : input.At(j * columns + i));
      const Value expected = WithoutNan(function, values);
      if (std::isnan(expected.real())) {
        ASSERT_TRUE(std::isnan(got.At(i).real())) << function << " of " << i;
      } else {
        ASSERT_LE(std::abs(got.At(i) - expected), 4e-3 * std::abs(expected))
            << Name(input.info.dtype) << " " << function << " of " << i << ", axis " << axis;
      }
    }
    harness().Reset();
  }
};

TEST_F(SkipNanTest, SkipsNanInEveryFunction) {
  for (v1::Reduction::Function function : kOfNumbers) {
    for (int axis : {0, 1}) {
      ExpectSkipped(function, WithNan(DType::kFloat64, 11, 37), axis);
      ExpectSkipped(function, Transposed(WithNan(DType::kFloat32, 37, 11)), axis);
    }
  }
}

TEST_F(SkipNanTest, SkipsNanInEveryDType) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kComplex64, DType::kComplex128}) {
    for (v1::Reduction::Function function :
         {v1::Reduction::FUNCTION_SUM, v1::Reduction::FUNCTION_MEAN, v1::Reduction::FUNCTION_MAX,
          v1::Reduction::FUNCTION_ARGMIN})
      ExpectSkipped(function, WithNan(dtype, 10, 24), 1);
  }
  const HostArray integers = Counting(DType::kInt32, {6, 50});
  for (v1::Reduction::Function function :
       {v1::Reduction::FUNCTION_SUM, v1::Reduction::FUNCTION_MIN, v1::Reduction::FUNCTION_ARGMAX})
    ExpectSkipped(function, integers, 1);
}

// Long rows are combined from several parts, some with only NaN.
TEST_F(SkipNanTest, PartsWithOnlyNanDoNotCount) {
  const HostArray input = Make(DType::kFloat32, {1, 1000003}, [](int64_t i) {
    return i < 700000 || i % 3 == 0 ? Value(std::nan("")) : Value(i % 5 - 2);
  });
  for (v1::Reduction::Function function : kOfNumbers) {
    if (function != v1::Reduction::FUNCTION_PROD) ExpectSkipped(function, input, 1);
  }
}

TEST_F(SkipNanTest, SkipNanWithMaskAndInitialValue) {
  const double nan = std::nan("");
  const HostArray input =
      Make(DType::kFloat64, {6}, [&](int64_t i) { return i % 2 == 0 ? nan : Value(i); });
  auto reduced = [&](v1::Reduction::Function function, std::vector<bool> mask,
                     std::optional<double> initial) {
    v1::Operation operation = ReductionOf(function, {});
    operation.mutable_reduction()->set_skip_nan(true);
    std::vector<DeviceArray> inputs = {harness().Put(input)};
    if (!mask.empty()) {
      operation.mutable_reduction()->mutable_where()->set_handle(2);
      inputs.push_back(harness().Put(
          Make(DType::kBool, {6}, [&](int64_t i) { return static_cast<double>(mask[i]); })));
    }
    if (initial) operation.mutable_reduction()->mutable_initial()->set_float_value(*initial);
    auto result = harness().Compute(operation, inputs);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result).At(0).real() : 0;
  };
  const std::vector<bool> mask = {true, true, true, true, false, false};
  const std::vector<bool> no_number = {true, false, true, false, false, false};
  EXPECT_EQ(reduced(v1::Reduction::FUNCTION_SUM, mask, 10), 14);
  EXPECT_EQ(reduced(v1::Reduction::FUNCTION_MEAN, mask, std::nullopt), 2);
  EXPECT_EQ(reduced(v1::Reduction::FUNCTION_MAX, mask, std::nullopt), 3);
  EXPECT_EQ(reduced(v1::Reduction::FUNCTION_MAX, mask, 7), 7);
  EXPECT_EQ(reduced(v1::Reduction::FUNCTION_MAX, no_number, 7), 7);
  EXPECT_EQ(reduced(v1::Reduction::FUNCTION_SUM, no_number, std::nullopt), 0);
  EXPECT_TRUE(std::isnan(reduced(v1::Reduction::FUNCTION_MIN, no_number, std::nullopt)));
  EXPECT_TRUE(std::isnan(reduced(v1::Reduction::FUNCTION_MEAN, no_number, std::nullopt)));
}

}  // namespace
}  // namespace stride::conformance
