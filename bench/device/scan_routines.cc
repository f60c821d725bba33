#include <algorithm>
#include <cstdint>
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

class ScanRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
  static std::string RunningSum(int axis, const char* type) {
    return One(Substitute(
        "accumulation { function: \"add\" input { handle: 1 } axis: $0 data_type: DATA_TYPE_$1 }",
        axis, type));
  }

  // How many are true, which a client asks before a selection.
  static std::string CountOf(int mask) {
    return Substitute(
        "operations { reduction { function: FUNCTION_COUNT_NONZERO input { handle: $0 } axes: 0 } "
        "outputs { handle: 50 } } ",
        mask);
  }
};

}  // namespace

void AddScanRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<ScanRows>(quick, libraries, rows);
}

}  // namespace stride::bench
