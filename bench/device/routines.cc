#include "bench/device/routines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/substitute.h"
#include "bench/device/cub_work.h"
#include "bench/device/linear_routines.h"
#include "bench/device/routine_inputs.h"
#include "bench/device/routine_text.h"

namespace stride::bench {
namespace {

using absl::Substitute;
using Enqueue = std::function<void()>;

constexpr char kCub[] = "CUB directly";

std::string Reduction(const char* function, const char* rest) {
  return One(
      Substitute("reduction { function: FUNCTION_$0 input { handle: 1 } $1 }", function, rest));
}

// Copies of whole inputs into parts of a new array, as stack, concatenate and roll are made.
std::string Part(int64_t first, int64_t last, int source, int target) {
  return Substitute(
      "operations { view { input { handle: 100 } steps { slice { start: $0 stop: $1 } } } "
      "outputs { handle: $3 } } "
      "operations { copy { input { handle: $2 } } outputs { handle: $3 existing: true } } ",
      first, last, source, target);
}

std::string Empty(const std::string& shape) {
  return Substitute(
      "operations { creation { empty { spec { data_type: DATA_TYPE_FLOAT32 $0 } } } "
      "outputs { handle: 100 } } ",
      shape);
}

std::string Range(int64_t stop, int handle) {
  return Substitute(
      "operations { creation { range { start { int_value: 0 } stop { int_value: $0 } "
      "data_type: DATA_TYPE_INT32 } } outputs { handle: $1 } } ",
      stop, handle);
}

std::string Transform(const char* kind, const std::vector<int64_t>& axes,
                      const std::vector<int64_t>& lengths) {
  std::string rest;
  for (int64_t axis : axes) rest += " axes: " + std::to_string(axis);
  for (int64_t length : lengths) rest += " lengths: " + std::to_string(length);
  return One(
      Substitute("fft { kind: KIND_$0 input { handle: 1 }$1 norm: NORM_BACKWARD }", kind, rest));
}

class Maker {
 public:
  Maker(bool quick, Libraries& libraries) : quick_(quick), libraries_(libraries) {}

  std::vector<NamedRoutine> All() {
    Elementwise();
    Reductions();
    Orders();
    Scans();
    Indices();
    Moves();
    Transposes();
    Transforms();
    RandomNumbers();
    return std::move(rows_);
  }

 private:
  void Add(const std::string& id, std::function<Routine()> make) {
    rows_.push_back({id, std::move(make)});
  }

  int64_t Count(double count) const { return static_cast<int64_t>(quick_ ? count / 10 : count); }
  int64_t Side(int64_t side) const { return quick_ ? side / 4 : side; }
  CUstream stream() const { return libraries_.stream; }

  void Elementwise() {
    Add("complex_product", [this] {
      const int64_t n = Count(4e6);
      return Routine{
          .what = "x*y, complex64",
          .operations =
              One("ufunc { function: \"multiply\" inputs { handle: 1 } inputs { handle: 2 } }"),
          .inputs = {Complexes({n}, 1), Complexes({n}, 2)},
          .moved = 3 * n * 8,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::MultiplyComplex(Floats(at, 0), Floats(at, 1), FloatResult(at), n,
                                                 stream());
              },
          .judge = Near<float>(1e-6)};
    });
    Add("pair_differences", [this] {
      const int64_t n = Side(4000);
      return Routine{
          .what = "x[:,None]-y[None], points of 3 float32",
          .operations = Substitute(
              "operations { view { input { handle: 1 } steps { reshape { shape: $0 shape: 1 shape: "
              "3 } } } "
              "outputs { handle: 10 } } "
              "operations { view { input { handle: 2 } steps { reshape { shape: 1 shape: $0 shape: "
              "3 } } } "
              "outputs { handle: 11 } } $1",
              n,
              One("ufunc { function: \"subtract\" inputs { handle: 10 } inputs { handle: 11 } }")),
          .inputs = {Uniforms({n, 3}, 1), Uniforms({n, 3}, 2)},
          .moved = n * n * 12,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::PairDifferences(Floats(at, 0), Floats(at, 1), FloatResult(at), n,
                                                 stream());
              },
          .judge = Same()};
    });
    Add("exp_float64", [this] {
      const int64_t n = Count(1e7);
      return Routine{.what = "exp, float64",
                     .operations = One("ufunc { function: \"exp\" inputs { handle: 1 } }"),
                     .inputs = {Normals64({n}, 1)},
                     .moved = 2 * n * 8,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Exponential(To<const double>(at.inputs[0]),
                                                        To<double>(at.result), n, stream());
                         },
                     .judge = Near<double>(1e-14)};
    });
    AddPlain("row_broadcast", "x * row, float32", {Side(4096)},
             One("ufunc { function: \"multiply\" inputs { handle: 1 } inputs { handle: 2 } }"),
             [](float x, float y) { return x * y; });
  }

  // Elementwise work that no library of the toolkit does: next to the driver's copy.
  void AddPlain(const std::string& id, const std::string& what, std::vector<int64_t> second,
                const std::string& operations, float (*expected)(float x, float y)) {
    Add(id, [=, this] {
      const int64_t n = Side(4096);
      std::vector<int64_t> shape = second.empty() ? std::vector<int64_t>{n, n} : second;
      Given x = Uniforms({n, n}, 1), y = Uniforms(shape, 2);
      auto judge = [=](const std::string& got, const std::string& want) {
        const auto left = bench::Elements<float>(*x.elements);
        const auto right = bench::Elements<float>(*y.elements);
        std::vector<double> values(n * n);
        for (int64_t i = 0; i < n * n; ++i)
          values[i] =
              expected(left[i % left.size()], right[(second.empty() ? i : i % n) % right.size()]);
        return NearTo(std::move(values), 1e-6)(got, want);
      };
      return Routine{.what = what,
                     .operations = operations,
                     .inputs = {x, y},
                     .moved = 2 * n * n * 4 + y.info.size_bytes(),
                     .judge = judge};
    });
  }

  void Reductions() {
    Add("sum", [this] {
      const int64_t n = Count(3e7);
      return Routine{.what = "sum, float32",
                     .operations = Reduction("SUM", "axes: 0 data_type: DATA_TYPE_FLOAT32"),
                     .inputs = {Uniforms({n}, 1)},
                     .moved = n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Sum(Floats(at, 0), FloatResult(at), n, stream());
                         },
                     .judge = Near<float>(1e-5)};
    });
    Add("max_int32", [this] {
      const int64_t n = Count(3e7);
      return Routine{.what = "max, int32",
                     .operations = Reduction("MAX", "axes: 0"),
                     .inputs = {Integers32(n, 1'000'000, 1)},
                     .moved = n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Max(To<const int32_t>(at.inputs[0]),
                                                To<int32_t>(at.result), n, stream());
                         },
                     .judge = Same()};
    });
    Add("argmax", [this] {
      const int64_t n = Count(2.5e7);
      return Routine{.what = "argmax, float32",
                     .operations = Reduction("ARGMAX", ""),
                     .inputs = {Normals({n}, 1)},
                     .moved = n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::ArgMax(Floats(at, 0), LongResult(at), n, stream());
                         },
                     .judge = Same()};
    });
    Add("argmax_axis1", [this] {
      const int64_t n = Side(4096);
      return Routine{.what = "argmax axis 1, float32",
                     .operations = Reduction("ARGMAX", "axes: 1"),
                     .inputs = {Normals({n, n}, 1)},
                     .moved = n * n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::ArgMaxOfRows(Floats(at, 0), LongResult(at), n, n,
                                                         stream());
                         },
                     .judge = Same()};
    });
    Add("sum_axis1", [this] {
      const int64_t n = Side(4096);
      return Routine{.what = "sum axis 1, float32",
                     .operations = Reduction("SUM", "axes: 1 data_type: DATA_TYPE_FLOAT32"),
                     .inputs = {Uniforms({n, n}, 1)},
                     .moved = n * n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::SumOfRows(Floats(at, 0), FloatResult(at), n, n,
                                                      stream());
                         },
                     .judge = Near<float>(1e-5)};
    });
    Add("sum_axis0", [this] {
      const int64_t n = Side(4096);
      return SumOfColumns(n, n);
    });
    AddSumOfSquares();
    Add("sum_leading", [this] { return SumOfColumns(Count(1e6), 8); });
    Add("var_axis0", [this] {
      const int64_t n = Side(4096);
      Given input = Uniforms({n, n}, 1);
      return Routine{
          .what = "var axis 0, float32",
          .operations = Reduction("VAR", "axes: 0"),
          .inputs = {input},
          .moved = n * n * 4,
          .judge = [elements = input.elements, n](const std::string& got, const std::string& want) {
            return NearTo(Variances(*elements, n), 1e-5)(got, want);
          }};
    });
    Add("std", [this] {
      const int64_t n = Count(1e7);
      return Routine{.what = "std, float32",
                     .operations = Reduction("STD", ""),
                     .inputs = {Uniforms({n}, 1)},
                     .moved = n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::StandardDeviation(Floats(at, 0), FloatResult(at), n,
                                                              stream());
                         },
                     .judge = Near<float>(1e-4)};
    });
  }

  void AddSumOfSquares() {
    Add("sum_of_squares", [this] {
      const int64_t n = Side(4096);
      Given x = Uniforms({n, n}, 1), y = Uniforms({n, n}, 2);
      auto judge = [=](const std::string& got, const std::string& want) {
        const auto left = bench::Elements<float>(*x.elements);
        const auto right = bench::Elements<float>(*y.elements);
        std::vector<double> sums(n);
        for (int64_t i = 0; i < n * n; ++i) {
          const double difference = left[i % left.size()] - right[i % right.size()];
          sums[i / n] += difference * difference;
        }
        return NearTo(std::move(sums), 1e-5)(got, want);
      };
      return Routine{.what = "sum((a-b)**2, axis 1), float32",
                     .operations = One(
                         "reduction { function: FUNCTION_SUM axes: 1 data_type: DATA_TYPE_FLOAT32 "
                         "expression { text: \"square(subtract(a0, a1))\" "
                         "inputs { key: \"a0\" value { handle: 1 } } "
                         "inputs { key: \"a1\" value { handle: 2 } } } }"),
                     .inputs = {x, y},
                     .moved = 2 * n * n * 4,
                     .judge = judge};
    });
  }

  Routine SumOfColumns(int64_t rows, int64_t columns) {
    return {.what = Substitute("sum axis 0 of $0 x $1, float32", rows, columns),
            .operations = Reduction("SUM", "axes: 0 data_type: DATA_TYPE_FLOAT32"),
            .inputs = {Uniforms({rows, columns}, 1)},
            .moved = rows * columns * 4,
            .baseline_name = "cuBLAS by a vector of ones",
            .baseline = [=, this](const Places& at) -> Enqueue {
              const std::shared_ptr<void> ones = cub_work::Allocate(rows * 4);
              cub_work::Fill(static_cast<float*>(ones.get()), 1, rows, stream());
              return [=, this] {
                libraries_.cublas().VectorByMatrix(
                    static_cast<int>(rows), static_cast<int>(columns),
                    reinterpret_cast<CUdeviceptr>(ones.get()), at.inputs[0], at.result);
              };
            },
            .judge = Near<float>(1e-4)};
  }

  static std::vector<double> Variances(const std::string& elements, int64_t n) {
    const std::vector<float> values = bench::Elements<float>(elements);
    std::vector<double> sums(n), squares(n);
    for (int64_t i = 0; i < n * n; ++i) {
      const double value = values[i % values.size()];
      sums[i % n] += value;
      squares[i % n] += value * value;
    }
    for (int64_t i = 0; i < n; ++i) squares[i] = squares[i] / n - sums[i] / n * (sums[i] / n);
    return squares;
  }

  template <typename T>
  void AddSort(const std::string& id, double count, const char* type,
               Given (*input)(std::vector<int64_t>, uint64_t)) {
    Add(id, [=, this] {
      const int64_t n = Count(count);
      return Routine{.what = std::string("sort, ") + type,
                     .operations = One("sort { input { handle: 1 } axis: 0 }"),
                     .inputs = {input({n}, 1)},
                     .moved = 2 * n * static_cast<int64_t>(sizeof(T)),
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Sort(To<const T>(at.inputs[0]), To<T>(at.result), n,
                                                 stream());
                         },
                     .judge = Same()};
    });
  }

  template <typename T>
  void AddArgsort(const std::string& id, double count, const char* type,
                  Given (*input)(std::vector<int64_t>, uint64_t)) {
    Add(id, [=, this] {
      const int64_t n = Count(count);
      return Routine{.what = std::string("argsort, ") + type,
                     .operations = One("sort { input { handle: 1 } axis: 0 indices: true }"),
                     .inputs = {input({n}, 1)},
                     .moved = n * static_cast<int64_t>(sizeof(T) + 8),
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Argsort(To<const T>(at.inputs[0]), LongResult(at), n,
                                                    stream());
                         },
                     .judge = Same()};
    });
  }

  static Given LargeIntegers(std::vector<int64_t> shape, uint64_t seed) {
    return Integers(shape[0], int64_t{1} << 60, seed);
  }

  void Orders() {
    AddSort<float>("sort", 1e7, "float32", Normals);
    AddSort<int64_t>("sort_int64", 1e7, "int64", LargeIntegers);
    AddSort<double>("sort_float64", 1e6, "float64", Normals64);
    AddSort<float>("sort_short", 3e4, "float32", Normals);
    AddArgsort<float>("argsort", 1e7, "float32", Normals);
    AddArgsort<int64_t>("argsort_int64", 1e6, "int64", LargeIntegers);
    AddRowSort();
    Add("unique", [this] { return Unique(Count(1e7)); });
    Add("median", [this] { return Median(Count(1e7)); });
    Add("top_k", [this] { return TopK(Count(1e7)); });
    Add("partition", [this] { return Partition(Count(1e6)); });
    Add("searchsorted", [this] {
      return Search("searchsorted, float32 in 1e6", Sorted(Count(1e6), 1), Count(1e7), false);
    });
    Add("digitize",
        [this] { return Search("digitize, float32 in 50", Steps(50, -3, 3), Count(1e6), true); });
  }

  Routine Unique(int64_t n) {
    Given input = Normals({n}, 1);
    std::vector<float> values = bench::Elements<float>(*input.elements);
    std::sort(values.begin(), values.end());
    const int64_t distinct = std::unique(values.begin(), values.end()) - values.begin();
    return {
        .what = "unique, float32",
        .operations = Substitute(
            "operations { creation { fill { spec { data_type: DATA_TYPE_BOOL shape: 1 } "
            "value { bool_value: true } } } outputs { handle: 10 } } "
            "operations { sort { input { handle: 1 } axis: 0 } outputs { handle: 11 } } "
            "operations { view { input { handle: 11 } steps { slice { start: 1 } } } outputs { "
            "handle: 12 } } "
            "operations { view { input { handle: 11 } steps { slice { stop: -1 } } } outputs { "
            "handle: 13 } } "
            "operations { expression { text: \"logical_and(not_equal(a0, a1), "
            "logical_not(isnan(a2)))\" "
            "inputs { key: \"a0\" value { handle: 12 } } inputs { key: \"a1\" value { handle: 13 } "
            "} "
            "inputs { key: \"a2\" value { handle: 13 } } } outputs { handle: 14 } } "
            "operations { creation { empty { spec { data_type: DATA_TYPE_BOOL shape: $0 } } } "
            "outputs { handle: 15 } } "
            "operations { view { input { handle: 15 } steps { slice { start: 0 stop: 1 } } } "
            "outputs { handle: 16 } } "
            "operations { copy { input { handle: 10 } } outputs { handle: 16 existing: true } } "
            "operations { view { input { handle: 15 } steps { slice { start: 1 stop: $0 } } } "
            "outputs { handle: 17 } } "
            "operations { copy { input { handle: 14 } } outputs { handle: 17 existing: true } } "
            "operations { reduction { function: FUNCTION_COUNT_NONZERO input { handle: 15 } axes: "
            "0 } "
            "outputs { handle: 18 } } $1",
            n,
            One(Substitute("compress { input { handle: 11 } mask { handle: 15 } count: $0 }",
                           distinct))),
        .inputs = {std::move(input)},
        .moved = (n + distinct) * 4,
        .baseline_name = kCub,
        .baseline =
            [=, this](const Places& at) {
              return cub_work::Unique(Floats(at, 0), FloatResult(at), n, stream());
            },
        .judge = Same()};
  }

  void AddRowSort() {
    Add("sort_rows", [this] {
      const int64_t n = Side(4096);
      return Routine{.what = "sort axis 1, float32",
                     .operations = One("sort { input { handle: 1 } axis: 1 }"),
                     .inputs = {Normals({n, n}, 1)},
                     .moved = 2 * n * n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::SortRows(Floats(at, 0), FloatResult(at), n, n,
                                                     stream());
                         },
                     .judge = Same()};
    });
  }

  // A sort into memory of its own: what CuPy does for a median and the greatest elements.
  std::function<Enqueue(const Places&)> SortElsewhere(int64_t n) {
    return [=, this](const Places& at) -> Enqueue {
      const std::shared_ptr<void> sorted = cub_work::Allocate(n * 4);
      const Enqueue sort =
          cub_work::Sort(Floats(at, 0), static_cast<float*>(sorted.get()), n, stream());
      return [sorted, sort] { sort(); };
    };
  }

  Routine Median(int64_t n) {
    Given input = Normals({n}, 1);
    std::vector<float> values = bench::Elements<float>(*input.elements);
    std::sort(values.begin(), values.end());
    const double want = (values[n / 2 - 1] + values[n / 2]) / 2;
    auto item = [](int index, int target) {
      return Substitute(
          "operations { view { input { handle: 10 } steps { slice { start: $0 index: true } } } "
          "outputs { handle: $1 } } ",
          index, target);
    };
    return {.what = "median, float32",
            .operations =
                "operations { select { input { handle: 1 } axis: 0 ranks { handle: 2 } } "
                "outputs { handle: 10 } } " +
                item(2, 11) + item(0, 12) + item(1, 13) +
                One("expression { text: \"where(isnan(a0), a0, divide(add(a1, a2), s3))\" "
                    "inputs { key: \"a0\" value { handle: 11 } } "
                    "inputs { key: \"a1\" value { handle: 12 } } "
                    "inputs { key: \"a2\" value { handle: 13 } } "
                    "inputs { key: \"s3\" value { scalar { int_value: 2 } } } }"),
            .inputs = {std::move(input),
                       Holding<int64_t>(DType::kInt64, {3}, {n / 2 - 1, n / 2, n - 1})},
            .moved = n * 4,
            .baseline_name = "CUB's sort",
            .baseline = SortElsewhere(n),
            .judge = NearTo({want}, 1e-6)};
  }

  Routine TopK(int64_t n) {
    Given input = Normals({n}, 1);
    std::vector<float> values = bench::Elements<float>(*input.elements);
    std::partial_sort(values.begin(), values.begin() + 100, values.end(), std::greater<>());
    return {.what = "the 100 greatest, float32",
            .operations =
                "operations { top_k { input { handle: 1 } axis: 0 k: 100 } "
                "outputs { handle: 100 } outputs { handle: 101 } }",
            .inputs = {std::move(input)},
            .moved = n * 4,
            .baseline_name = "CUB's sort",
            .baseline = SortElsewhere(n),
            .judge = NearTo(std::vector<double>(values.begin(), values.begin() + 100), 0)};
  }

  // CUB has no partition: its users sort, as CuPy does.
  Routine Partition(int64_t n) {
    Given input = Normals({n}, 1);
    return {
        .what = "partition in the middle, float32",
        .operations = One(Substitute("partition { input { handle: 1 } axis: 0 kth: $0 }", n / 2)),
        .inputs = {std::move(input)},
        .moved = 2 * n * 4,
        .baseline_name = "CUB's sort",
        .baseline =
            [=, this](const Places& at) {
              return cub_work::Sort(Floats(at, 0), FloatResult(at), n, stream());
            },
        .judge = [n](const std::string& got, const std::string& want) -> std::string {
          std::vector<float> values = bench::Elements<float>(got);
          const std::vector<float> sorted = bench::Elements<float>(want);
          const float middle = values[n / 2];
          for (int64_t i = 0; i < n; ++i) {
            if (i < n / 2 ? values[i] > middle : values[i] < middle)
              return "element " + std::to_string(i) + " is on the wrong side";
          }
          std::sort(values.begin(), values.end());
          return values == sorted ? "" : "other elements than the input's";
        }};
  }

  Routine Search(const std::string& what, Given sorted, int64_t n, bool right) {
    const int64_t num_sorted = sorted.info.num_elements();
    return {.what = what,
            .operations = One(Substitute("search { sorted { handle: 1 } values { handle: 2 }$0 }",
                                         right ? " right: true" : "")),
            .inputs = {std::move(sorted), Normals({n}, 2)},
            .moved = num_sorted * 4 + n * 12,
            .baseline_name = "bisection by CUB's DeviceFor",
            .baseline =
                [=, this](const Places& at) {
                  return cub_work::Search(Floats(at, 0), num_sorted, Floats(at, 1), LongResult(at),
                                          n, right, stream());
                },
            .judge = Same()};
  }

  static std::string RunningSum(int axis, const char* type) {
    return One(Substitute(
        "accumulation { function: \"add\" input { handle: 1 } axis: $0 data_type: DATA_TYPE_$1 }",
        axis, type));
  }

  void Scans() {
    Add("cumsum", [this] {
      const int64_t n = Count(3e7);
      return Routine{.what = "cumsum, float32",
                     .operations = RunningSum(0, "FLOAT32"),
                     .inputs = {Uniforms({n}, 1)},
                     .moved = 2 * n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::RunningSum(Floats(at, 0), FloatResult(at), n, stream());
                         },
                     .judge = Near<float>(1e-4)};
    });
    Add("cumsum_int64", [this] {
      const int64_t n = Count(3e7);
      return Routine{.what = "cumsum, int64",
                     .operations = RunningSum(0, "INT64"),
                     .inputs = {Integers(n, 1000, 1)},
                     .moved = 2 * n * 8,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::RunningSum(Longs(at, 0), LongResult(at), n, stream());
                         },
                     .judge = Same()};
    });
    Add("cumsum_axis1", [this] {
      const int64_t n = Side(4096);
      return Routine{.what = "cumsum axis 1, float32",
                     .operations = RunningSum(1, "FLOAT32"),
                     .inputs = {Uniforms({n, n}, 1)},
                     .moved = 2 * n * n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::RunningSumOfRows(Floats(at, 0), FloatResult(at), n, n,
                                                             stream());
                         },
                     .judge = Near<float>(1e-5)};
    });
    Add("cumsum_axis0", [this] {
      const int64_t n = Side(4096);
      Given input = Uniforms({n, n}, 1);
      return Routine{
          .what = "cumsum axis 0, float32",
          .operations = RunningSum(0, "FLOAT32"),
          .inputs = {input},
          .moved = 2 * n * n * 4,
          .judge = [elements = input.elements, n](const std::string& got, const std::string& want) {
            const std::vector<float> values = bench::Elements<float>(*elements);
            std::vector<double> sums(n * n);
            for (int64_t i = 0; i < n * n; ++i)
              sums[i] = values[i % values.size()] + (i < n ? 0 : sums[i - n]);
            return NearTo(std::move(sums), 1e-5)(got, want);
          }};
    });
    Add("mask", [this] {
      const int64_t n = Count(1e7);
      Given mask = Mask(n, 2);
      const int64_t count = std::count(mask.elements->begin(), mask.elements->end(), 1);
      return Routine{.what = "x[mask], float32",
                     .operations = CountOf(2) + One(Substitute("compress { input { handle: 1 } "
                                                               "mask { handle: 2 } count: $0 }",
                                                               count)),
                     .inputs = {Uniforms({n}, 1), std::move(mask)},
                     .moved = n * 5 + count * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Select(Floats(at, 0), Bools(at, 1), FloatResult(at), n,
                                                   stream());
                         },
                     .judge = Same()};
    });
    Add("nonzero", [this] {
      const int64_t n = Count(1e7);
      Given mask = Mask(n, 2);
      const int64_t count = std::count(mask.elements->begin(), mask.elements->end(), 1);
      return Routine{
          .what = "nonzero of bool",
          .operations =
              CountOf(1) + One(Substitute("nonzero { input { handle: 1 } count: $0 }", count)),
          .inputs = {std::move(mask)},
          .moved = n + count * 8,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::Nonzero(Bools(at, 0), LongResult(at), n, stream());
              },
          .judge = Same()};
    });
  }

  // How many are true, which a client asks before a selection.
  static std::string CountOf(int mask) {
    return Substitute(
        "operations { reduction { function: FUNCTION_COUNT_NONZERO input { handle: $0 } axes: 0 } "
        "outputs { handle: 50 } } ",
        mask);
  }

  void Indices() {
    Add("take", [this] {
      const int64_t n = Count(1e7), from = Count(3e7);
      return Routine{
          .what = "x[places], float32",
          .operations =
              One("gather { input { handle: 1 } indices { handle: 2 } mode: INDEX_MODE_RAISE }"),
          .inputs = {Uniforms({from}, 1), Integers(n, from, 2)},
          .moved = n * 16,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::Take(Floats(at, 0), Longs(at, 1), FloatResult(at), n, stream());
              },
          .judge = Same()};
    });
    Add("scatter", [this] { return Put(Count(1e7), Count(1e6)); });
    Add("add_at_many", [this] { return AddAt(Count(1e7), Count(1e6)); });
    Add("add_at_few", [this] { return AddAt(Count(1e6), 16); });
    Add("bincount", [this] {
      const int64_t n = Count(1e7);
      return Routine{
          .what = "bincount of 1000, int64",
          .operations = One("group_reduce { function: \"add\" values { scalar { int_value: 1 } } "
                            "groups { handle: 1 } num_groups: 1000 data_type: DATA_TYPE_INT64 }"),
          .inputs = {Integers(n, 1000, 1)},
          .moved = n * 8,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::CountValues(Longs(at, 0), LongResult(at), n, 1000, stream());
              },
          .judge = Same()};
    });
    Add("group_sum", [this] {
      const int64_t n = Count(1e7);
      // The baseline's sums begin with the zeros of new memory.
      return Routine{
          .what = "sums by 1000 groups, float32",
          .operations = One("group_reduce { function: \"add\" values { handle: 2 } "
                            "groups { handle: 1 } num_groups: 1000 data_type: DATA_TYPE_FLOAT32 }"),
          .inputs = {Integers(n, 1000, 1), Uniforms({n}, 2)},
          .moved = n * 12,
          .baseline_name = "atomic additions by CUB's DeviceFor",
          .baseline =
              [=, this](const Places& at) {
                return cub_work::AddAt(FloatResult(at), Longs(at, 0), Floats(at, 1), n, stream());
              },
          .judge = Near<float>(1e-4)};
    });
    Add("histogram", [this] {
      const int64_t n = Count(1e7);
      return Routine{.what = "histogram of 100 bins, float32",
                     .operations = One("histogram { input { handle: 1 } edges { handle: 2 } }"),
                     .inputs = {Normals({n}, 1), Steps(101, -4, 4)},
                     .moved = n * 4,
                     .baseline_name = kCub,
                     .baseline =
                         [=, this](const Places& at) {
                           return cub_work::Histogram(Floats(at, 0), Floats(at, 1), LongResult(at),
                                                      n, 100, stream());
                         },
                     .judge = Same()};
    });
  }

  Routine Put(int64_t n, int64_t size) {
    Given target = Uniforms({size}, 1), places = Integers(n, size, 2), values = Uniforms({n}, 3);
    auto judge = [target, places, values](const std::string& got, const std::string&) {
      const auto elements = bench::Elements<float>(*values.elements);
      const auto into = bench::Elements<int64_t>(*places.elements);
      const auto old = bench::Elements<float>(*target.elements);
      std::vector<double> want(old.begin(), old.begin() + target.info.num_elements());
      for (size_t i = 0; i < into.size(); ++i) want[into[i]] = elements[i % elements.size()];
      return NearTo(std::move(want), 0)(got, "");
    };
    return {.what = Substitute("y[places]=x, $0 into $1, float32", n, size),
            .operations =
                "operations { scatter { values { handle: 3 } indices { handle: 2 } "
                "mode: INDEX_MODE_RAISE } outputs { handle: 1 existing: true } }",
            .in_place = true,
            .inputs = {target, places, values},
            .moved = n * 12 + size * 4,
            .baseline_name = "CUB directly, in any order",
            .baseline =
                [=, this](const Places& at) {
                  return cub_work::Put(FloatResult(at), Longs(at, 1), Floats(at, 2), n, stream());
                },
            .judge = std::move(judge)};
  }

  Routine AddAt(int64_t n, int64_t size) {
    return {.what = Substitute("add.at, $0 into $1, float32", n, size),
            .operations =
                "operations { apply_at { function: \"add\" values { handle: 3 } "
                "indices { handle: 2 } } outputs { handle: 1 existing: true } }",
            .in_place = true,
            .inputs = {Uniforms({size}, 1), Integers(n, size, 2), Uniforms({n}, 3)},
            .moved = n * 12 + 2 * size * 4,
            .baseline_name = "atomic additions by CUB's DeviceFor",
            .baseline =
                [=, this](const Places& at) {
                  return cub_work::AddAt(FloatResult(at), Longs(at, 1), Floats(at, 2), n, stream());
                },
            .judge = Near<float>(1e-4)};
  }

  void Moves() {
    Add("roll", [this] {
      const int64_t n = Count(1e7), shift = 12345;
      return Routine{
          .what = "roll, float32",
          .operations =
              Empty(Substitute("shape: $0", n)) +
              Substitute(
                  "operations { view { input { handle: 1 } steps { slice { start: $0 stop: $1 } } "
                  "} "
                  "outputs { handle: 10 } } "
                  "operations { view { input { handle: 1 } steps { slice { start: 0 stop: $0 } } } "
                  "outputs { handle: 11 } } ",
                  n - shift, n) +
              Part(0, shift, 10, 12) + Part(shift, n, 11, 13),
          .inputs = {Uniforms({n}, 1)},
          .moved = 2 * n * 4,
          .baseline_name = "two of the driver's copies",
          .baseline = [=, this](const Places& at) -> Enqueue {
            return [=, this] {
              libraries_.copy(at.result, at.inputs[0] + (n - shift) * 4, shift * 4);
              libraries_.copy(at.result + shift * 4, at.inputs[0], (n - shift) * 4);
            };
          },
          .judge = Same()};
    });
    Add("repeat", [this] {
      const int64_t n = Count(1e6), times = 8;
      return Routine{
          .what = "repeat 8 times, float32",
          .operations = Substitute(
              "operations { view { input { handle: 1 } steps { reshape { shape: $0 shape: 1 } } "
              "steps { broadcast { shape: $0 shape: $1 } } } outputs { handle: 10 } } $2",
              n, times, One("copy { input { handle: 10 } data_type: DATA_TYPE_FLOAT32 }")),
          .inputs = {Uniforms({n}, 1)},
          .moved = (1 + times) * n * 4,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::Repeat(Floats(at, 0), FloatResult(at), n, times, stream());
              },
          .judge = Same()};
    });
    Add("tril", [this] {
      const int64_t n = Side(4096);
      return Routine{
          .what = "tril, float32",
          .operations = Range(n, 10) +
                        Substitute("operations { view { input { handle: 10 } steps { reshape { "
                                   "shape: $0 shape: 1 } } } "
                                   "outputs { handle: 11 } } ",
                                   n) +
                        Range(n, 12) +
                        One("expression { text: \"where(greater_equal(a0, a1), a2, s3)\" "
                            "inputs { key: \"a0\" value { handle: 11 } } "
                            "inputs { key: \"a1\" value { handle: 12 } } "
                            "inputs { key: \"a2\" value { handle: 1 } } "
                            "inputs { key: \"s3\" value { scalar { int_value: 0 } } } }"),
          .inputs = {Uniforms({n, n}, 1)},
          .moved = 2 * n * n * 4,
          .baseline_name = kCub,
          .baseline =
              [=, this](const Places& at) {
                return cub_work::LowerTriangle(Floats(at, 0), FloatResult(at), n, stream());
              },
          .judge = Same()};
    });
    Add("stack", [this] {
      const int64_t n = Count(1e7);
      return Joined("stack of two, float32", n,
                    Empty(Substitute("shape: 2 shape: $0", n)) + Row(0, 1, 10) + Row(1, 2, 11));
    });
    Add("concatenate", [this] {
      const int64_t n = Count(1e7);
      return Joined(
          "concatenate of two, float32", n,
          Empty(Substitute("shape: $0", 2 * n)) + Part(0, n, 1, 10) + Part(n, 2 * n, 2, 11));
    });
  }

  // Handle 10 is the transpose of the square input `matrix`.
  static std::string Transposed(int matrix) {
    return Substitute(
        "operations { view { input { handle: $0 } steps { transpose { axes: 1 axes: 0 } } } "
        "outputs { handle: 10 } } ",
        matrix);
  }

  void Transposes() {
    Add("transpose", [this] {
      const int64_t n = Side(8192);
      return Routine{.what = "x.T copied, float32",
                     .operations = Transposed(1) + One("copy { input { handle: 10 } }"),
                     .inputs = {Uniforms({n, n}, 1)},
                     .moved = 2 * n * n * 4,
                     .baseline_name = "cuBLAS directly",
                     .baseline = [=, this](const Places& at) -> Enqueue {
                       return [=, this] {
                         libraries_.cublas().Transpose(static_cast<int>(n), at.inputs[0], 0,
                                                       at.result);
                       };
                     },
                     .judge = Same()};
    });
    Add("add_transpose", [this] {
      const int64_t n = Side(4096);
      return Routine{
          .what = "x + y.T, float32",
          .operations =
              Transposed(2) +
              One("ufunc { function: \"add\" inputs { handle: 1 } inputs { handle: 10 } }"),
          .inputs = {Uniforms({n, n}, 1), Uniforms({n, n}, 2)},
          .moved = 3 * n * n * 4,
          .baseline_name = "cuBLAS directly",
          .baseline = [=, this](const Places& at) -> Enqueue {
            return [=, this] {
              libraries_.cublas().Transpose(static_cast<int>(n), at.inputs[1], at.inputs[0],
                                            at.result);
            };
          },
          .judge = Same()};
    });
  }

  static std::string Row(int index, int source, int target) {
    return Substitute(
        "operations { view { input { handle: 100 } steps { slice { start: $0 index: true } } } "
        "outputs { handle: $2 } } "
        "operations { copy { input { handle: $1 } } outputs { handle: $2 existing: true } } ",
        index, source, target);
  }

  Routine Joined(const std::string& what, int64_t n, const std::string& operations) {
    return {.what = what,
            .operations = operations,
            .inputs = {Uniforms({n}, 1), Uniforms({n}, 2)},
            .moved = 4 * n * 4,
            .baseline_name = "two of the driver's copies",
            .baseline = [=, this](const Places& at) -> Enqueue {
              return [=, this] {
                libraries_.copy(at.result, at.inputs[0], n * 4);
                libraries_.copy(at.result + n * 4, at.inputs[1], n * 4);
              };
            },
            .judge = Same()};
  }

  // The mean and deviation of `count` numbers, to five standard errors.
  static Judge Distributed(double mean, double deviation) {
    return [=](const std::string& got, const std::string&) -> std::string {
      const std::vector<float> values = bench::Elements<float>(got);
      double sum = 0, squares = 0;
      for (float value : values) {
        sum += value;
        squares += static_cast<double>(value) * value;
      }
      const double n = static_cast<double>(values.size());
      const double found = sum / n, spread = std::sqrt(squares / n - found * found);
      if (std::fabs(found - mean) < 5 * deviation / std::sqrt(n) &&
          std::fabs(spread - deviation) < 5 * deviation / std::sqrt(n))
        return "";
      return "mean " + std::to_string(found) + ", deviation " + std::to_string(spread);
    };
  }

  static std::string Random(int64_t count, const char* distribution) {
    return One(
        Substitute("creation { random { spec { data_type: DATA_TYPE_FLOAT32 shape: $0 } "
                   "generator: GENERATOR_PHILOX_4X32 key: 7434755675892716031 $1 { } } }",
                   count, distribution));
  }

  void RandomNumbers() {
    Add("normal", [this] {
      const int64_t n = Count(1e8);
      return Routine{.what = "standard_normal, float32",
                     .operations = Random(n, "normal"),
                     .moved = n * 4,
                     .baseline_name = "cuRAND's Philox directly",
                     .baseline = [=, this](const Places& at) -> Enqueue {
                       return [=, this] { libraries_.curand().Normal(at.result, n); };
                     },
                     .judge = Distributed(0, 1)};
    });
    Add("uniform", [this] {
      const int64_t n = Count(1e8);
      return Routine{.what = "random, float32",
                     .operations = Random(n, "uniform"),
                     .moved = n * 4,
                     .baseline_name = "cuRAND's Philox directly",
                     .baseline = [=, this](const Places& at) -> Enqueue {
                       return [=, this] { libraries_.curand().Uniform(at.result, n); };
                     },
                     .judge = Distributed(0.5, std::sqrt(1.0 / 12))};
    });
    Add("integers", [this] {
      const int64_t n = Count(1e7);
      return Routine{
          .what = "integers below 1000, int32",
          .operations =
              One(Substitute("creation { random { spec { data_type: DATA_TYPE_INT32 shape: $0 } "
                             "generator: GENERATOR_PHILOX_4X32 key: 7434755675892716031 "
                             "integers { low { int_value: 0 } high { int_value: 1000 } } } }",
                             n)),
          .moved = n * 4,
          .baseline_name = "as many words of cuRAND's Philox",
          .baseline = [=, this](const Places& at) -> Enqueue {
            return [=, this] { libraries_.curand().Words(at.result, n); };
          },
          .judge = [](const std::string& got, const std::string&) -> std::string {
            const std::vector<int32_t> values = bench::Elements<int32_t>(got);
            const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
            return *least == 0 && *greatest == 999 ? "" : "other values than 0 to 999";
          }};
    });
    Add("permutation", [this] {
      const int64_t n = Count(1e6);
      // The baseline's keys are there before.
      return Routine{
          .what = "permutation",
          .operations = Substitute(
              "operations { creation { random { spec { data_type: DATA_TYPE_UINT64 shape: $0 } "
              "generator: GENERATOR_PHILOX_4X32 key: 7434755675892716031 bits { } } } "
              "outputs { handle: 10 } } $1",
              n, One("sort { input { handle: 10 } axis: 0 indices: true }")),
          .inputs = {LargeIntegers({n}, 1)},
          .moved = n * 8,
          .baseline_name = "CUB's sort of pairs",
          .baseline =
              [=, this](const Places& at) {
                return cub_work::Argsort(Longs(at, 0), LongResult(at), n, stream());
              },
          .judge = [n](const std::string& got, const std::string&) -> std::string {
            std::vector<int64_t> values = bench::Elements<int64_t>(got);
            std::sort(values.begin(), values.end());
            for (int64_t i = 0; i < n; ++i) {
              if (values[i] != i) return "no permutation";
            }
            return "";
          }};
    });
  }

  void AddTransform(const std::string& id, const std::string& what, std::vector<int64_t> shape) {
    Add(id, [=, this] {
      std::vector<int64_t> axes;
      int64_t count = 1;
      for (size_t i = 0; i < shape.size(); ++i) {
        axes.push_back(static_cast<int64_t>(i));
        count *= shape[i];
      }
      return Routine{.what = what,
                     .operations = Transform("COMPLEX", axes, shape),
                     .inputs = {Complexes(shape, 1)},
                     .moved = 2 * count * 8,
                     .baseline_name = "cuFFT directly",
                     .baseline =
                         [=, this](const Places& at) {
                           return libraries_.cufft().Complex(
                               std::vector<int>(shape.begin(), shape.end()), at.inputs[0],
                               at.result);
                         },
                     .judge = Near<float>(1e-5)};
    });
  }

  void Transforms() {
    AddTransform("fft_1e6", "fft of 1e6, complex64", {Count(1e6)});
    AddTransform("fft", "fft of 2^22, complex64", {quick_ ? 1 << 18 : 1 << 22});
    AddTransform("fft2", "fft2 of 2048^2, complex64", {Side(2048), Side(2048)});
    AddTransform("fftn", "fftn of 256^3, complex64", {Side(256), Side(256), Side(256)});
    Add("rfft_rows", [this] {
      const int64_t n = Side(4096);
      return Routine{.what = "rfft of rows, float32",
                     .operations = Transform("REAL_TO_COMPLEX", {1}, {n}),
                     .inputs = {Uniforms({n, n}, 1)},
                     .moved = n * n * 4 + n * (n / 2 + 1) * 8,
                     .baseline_name = "cuFFT directly",
                     .baseline =
                         [=, this](const Places& at) {
                           return libraries_.cufft().RealRows(
                               static_cast<int>(n), static_cast<int>(n), at.inputs[0], at.result);
                         },
                     .judge = Near<float>(1e-5)};
    });
  }

  const bool quick_;
  Libraries& libraries_;
  std::vector<NamedRoutine> rows_;
};

}  // namespace

std::vector<NamedRoutine> Routines(bool quick, Libraries& libraries) {
  auto maker = std::make_shared<Maker>(quick, libraries);
  std::vector<NamedRoutine> rows = maker->All();
  for (NamedRoutine& row : rows) row.make = [maker, make = std::move(row.make)] { return make(); };
  AddLinearRoutines(quick, libraries, &rows);
  return rows;
}

}  // namespace stride::bench
