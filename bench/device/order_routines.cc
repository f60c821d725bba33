#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/substitute.h"
#include "bench/device/cub_work.h"
#include "bench/device/routine_inputs.h"
#include "bench/device/routine_rows.h"
#include "bench/device/routine_text.h"
#include "bench/device/row_maker.h"

namespace stride::bench {
namespace {

using absl::Substitute;

class OrderRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
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
};

}  // namespace

void AddOrderRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<OrderRows>(quick, libraries, rows);
}

}  // namespace stride::bench
