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

class ElementRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
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
};

}  // namespace

void AddElementRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<ElementRows>(quick, libraries, rows);
}

}  // namespace stride::bench
