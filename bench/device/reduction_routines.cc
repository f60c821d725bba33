#include <cstdint>
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

std::string Reduction(const char* function, const char* rest) {
  return One(
      Substitute("reduction { function: FUNCTION_$0 input { handle: 1 } $1 }", function, rest));
}

class ReductionRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
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
};

}  // namespace

void AddReductionRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<ReductionRows>(quick, libraries, rows);
}

}  // namespace stride::bench
