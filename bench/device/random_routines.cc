#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
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

class RandomRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
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
};

}  // namespace

void AddRandomRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<RandomRows>(quick, libraries, rows);
}

}  // namespace stride::bench
