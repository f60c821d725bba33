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

std::string Transform(const char* kind, const std::vector<int64_t>& axes,
                      const std::vector<int64_t>& lengths) {
  std::string rest;
  for (int64_t axis : axes) rest += " axes: " + std::to_string(axis);
  for (int64_t length : lengths) rest += " lengths: " + std::to_string(length);
  return One(
      Substitute("fft { kind: KIND_$0 input { handle: 1 }$1 norm: NORM_BACKWARD }", kind, rest));
}

class TransformRows : public RowMaker {
 public:
  using RowMaker::RowMaker;

  void AddAll() {
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

 private:
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
};

}  // namespace

void AddTransformRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  AddRows<TransformRows>(quick, libraries, rows);
}

}  // namespace stride::bench
