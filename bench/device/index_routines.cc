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

class IndexRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
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
};

}  // namespace

void AddIndexRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<IndexRows>(quick, libraries, rows);
}

}  // namespace stride::bench
