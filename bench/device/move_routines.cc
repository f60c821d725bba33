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

class MoveRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
    Moves();
    Transposes();
  }

 private:
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

  // Handle 10 is the transpose of the square input `matrix`.
  static std::string Transposed(int matrix) {
    return Substitute(
        "operations { view { input { handle: $0 } steps { transpose { axes: 1 axes: 0 } } } "
        "outputs { handle: 10 } } ",
        matrix);
  }
};

}  // namespace

void AddMoveRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<MoveRows>(quick, libraries, rows);
}

}  // namespace stride::bench
