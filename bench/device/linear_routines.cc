#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/substitute.h"
#include "bench/device/cub_work.h"
#include "bench/device/routine_inputs.h"
#include "bench/device/routine_rows.h"
#include "bench/device/routine_text.h"

namespace stride::bench {
namespace {

using absl::Substitute;
using Enqueue = std::function<void()>;

constexpr char kCublas[] = "cuBLAS directly";
constexpr char kCusolver[] = "cuSOLVER directly";
constexpr char kMatmul[] = "matmul { left { handle: 1 } right { handle: 2 } }";
constexpr char kMatmulInInt32[] =
    "matmul { left { handle: 1 } right { handle: 2 } data_type: DATA_TYPE_INT32 }";

// A symmetric matrix of int8, which a library may take for its transpose.
Given SymmetricBytes(int64_t n, int64_t seed) {
  std::vector<int8_t> elements(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      elements[i * n + j] =
          static_cast<int8_t>((std::min(i, j) * 7919 + std::max(i, j) * (104'729 + seed)) % 251);
  }
  return Holding(DType::kInt8, {n, n}, elements);
}

// Symmetric, and positive definite by Gershgorin's circles: 2 on the diagonal, and less than 1 in
// all of a row's other elements together. Several are the same one.
template <typename T>
Given Definite(DType dtype, std::vector<int64_t> shape) {
  const int64_t n = shape.back();
  std::vector<T> elements(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t both = std::min(i, j) * 7919 + std::max(i, j) * 104729;
      elements[i * n + j] = i == j ? 2 : static_cast<T>(both % 1000) / static_cast<T>(1000 * n);
    }
  }
  return Holding(dtype, std::move(shape), elements);
}

// Compares the lower triangles of square matrices, where the baseline leaves other elements in the
// upper ones; ours has zeros there.
template <typename T>
Judge LowerNear(int64_t n, double tolerance) {
  return [n, tolerance](const std::string& got, const std::string& want) -> std::string {
    const std::vector<T> ours = Elements<T>(got), theirs = Elements<T>(want);
    for (size_t i = 0; i < ours.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / n % n, column = static_cast<int64_t>(i) % n;
      const T expected = column <= row ? theirs[i] : 0;
      if (!(std::fabs(ours[i] - expected) <= tolerance))
        return "element " + std::to_string(i) + " is " + std::to_string(ours[i]) + ", not " +
               std::to_string(expected);
    }
    return "";
  };
}

CUdeviceptr AddressOf(const std::shared_ptr<void>& memory) {
  return reinterpret_cast<CUdeviceptr>(memory.get());
}

class Maker {
 public:
  Maker(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows)
      : quick_(quick), libraries_(&libraries), rows_(rows) {}

  void Products() {
    Add("vecmat", [libraries = libraries_, n = quick_ ? 1000 : 10'000] {
      return Routine{.what = "vector by matrix, float32",
                     .operations = One(kMatmul),
                     .inputs = {Uniforms({n}, 1), Uniforms({n, n}, 2)},
                     .moved = int64_t{4} * n * n,
                     .baseline_name = kCublas,
                     .baseline = [=](const Places& at) -> Enqueue {
                       return [=] {
                         libraries->cublas().VectorByMatrix(n, n, at.inputs[0], at.inputs[1],
                                                            at.result);
                       };
                     },
                     .judge = Near<float>(1e-5)};
    });
    Add("dot", [libraries = libraries_, n = quick_ ? 1'000'000 : 10'000'000] {
      return Routine{.what = "dot, float32",
                     .operations = One(kMatmul),
                     .inputs = {Uniforms({n}, 1), Uniforms({n}, 2)},
                     .moved = int64_t{8} * n,
                     .baseline_name = kCublas,
                     .baseline = [=](const Places& at) -> Enqueue {
                       return [=] {
                         libraries->cublas().Dot(n, at.inputs[0], at.inputs[1], at.result);
                       };
                     },
                     .judge = Near<float>(1e-4)};
    });
    Add("matmul_batch", [libraries = libraries_, count = quick_ ? 100 : 1000] {
      const int n = 32;
      return Routine{.what = Substitute("matmul of $0 matrices of 32^2, float64", count),
                     .operations = One(kMatmul),
                     .inputs = {Normals64({count, n, n}, 1), Normals64({count, n, n}, 2)},
                     .moved = int64_t{3} * count * n * n * 8,
                     .baseline_name = kCublas,
                     .baseline = [=](const Places& at) -> Enqueue {
                       return [=] {
                         libraries->cublas().MultiplyBatch(n, count, at.inputs[0], at.inputs[1],
                                                           at.result);
                       };
                     },
                     .judge = Near<double>(1e-13)};
    });
  }

  void ProductsOfBytes() {
    for (int n : {256, 1024, 4096}) {
      if (quick_ && n > 256) return;
      Add(Substitute("product_int8_$0", n), [libraries = libraries_, n] {
        return Routine{.what = Substitute("matmul of $0 x $0, int8 with sums in int32", n),
                       .operations = One(kMatmulInInt32),
                       .inputs = {SymmetricBytes(n, 1), SymmetricBytes(n, 2)},
                       .moved = int64_t{6} * n * n,
                       .baseline_name = kCublas,
                       .baseline = [=](const Places& at) -> Enqueue {
                         return [=] {
                           libraries->cublas().MultiplyBytes(n, at.inputs[0], at.inputs[1],
                                                             at.result);
                         };
                       },
                       .judge = Same()};
      });
    }
  }

  void Factors() {
    AddCholesky<double>("cholesky_512", DType::kFloat64, 512);
    if (!quick_) AddCholesky<float>("cholesky_4096", DType::kFloat32, 4096);
    Add("cholesky_batch", [libraries = libraries_, count = quick_ ? 100 : 1000] {
      const int n = 32;
      const int64_t bytes = int64_t{8} * count * n * n;
      return Routine{
          .what = Substitute("cholesky of $0 matrices of 32^2, float64", count),
          .operations = One("linalg { function: FUNCTION_CHOLESKY operands { handle: 1 } }"),
          .inputs = {Definite<double>(DType::kFloat64, {count, n, n})},
          .moved = 2 * bytes,
          .baseline_name = kCusolver,
          .baseline = [=](const Places& at) -> Enqueue {
            const auto addresses =
                cub_work::Addresses(To<void>(at.result), 8 * n * n, count, libraries->stream);
            const auto errors = cub_work::Allocate(4 * count);
            return [=] {
              libraries->copy(at.result, at.inputs[0], bytes);
              libraries->cusolver().CholeskyBatch(
                  {.side = n, .address = AddressOf(addresses), .error = AddressOf(errors)}, count);
            };
          },
          .judge = LowerNear<double>(n, 1e-12)};
    });
  }

  void Systems() {
    AddSolve("solve_512", 512);
    if (!quick_) AddSolve("solve_2048", 2048);
    Add("solve_batch", [libraries = libraries_, count = quick_ ? 100 : 1000] {
      const int n = 32;
      const int64_t bytes = int64_t{8} * count * n * n;
      return Routine{.what = Substitute("solve of $0 systems of 32, float64", count),
                     .operations = FirstColumn(2) + kSolve,
                     .inputs = {Definite<double>(DType::kFloat64, {count, n, n})},
                     .moved = bytes + int64_t{2} * count * n * 8,
                     .baseline_name = kCublas,
                     .baseline = [=](const Places& at) -> Enqueue {
                       const auto matrices = cub_work::Allocate(bytes);
                       const auto addresses =
                           cub_work::Addresses(matrices.get(), 8 * n * n, count, libraries->stream);
                       const auto vectors = cub_work::Addresses(To<void>(at.result), 8 * n, count,
                                                                libraries->stream);
                       const auto pivots = cub_work::Allocate(4 * count * n);
                       const auto errors = cub_work::Allocate(4 * count);
                       // The matrices are symmetric: their first columns are their first rows.
                       const Enqueue columns =
                           cub_work::FirstRows(To<const double>(at.inputs[0]),
                                               To<double>(at.result), n, count, libraries->stream);
                       return [=] {
                         libraries->copy(AddressOf(matrices), at.inputs[0], bytes);
                         columns();
                         libraries->cublas().SolveBatch({.side = n,
                                                         .count = count,
                                                         .matrices = AddressOf(addresses),
                                                         .vectors = AddressOf(vectors),
                                                         .pivots = AddressOf(pivots),
                                                         .errors = AddressOf(errors)});
                       };
                     },
                     .judge = Near<double>(1e-12)};
    });
  }

 private:
  // Handle 10 is the first column of the matrices.
  static std::string FirstColumn(int axis) {
    return Substitute(
        "operations { view { input { handle: 1 } steps { slice { axis: $0 stop: 1 } } } "
        "outputs { handle: 10 } } ",
        axis);
  }
  static constexpr char kSolve[] =
      "operations { linalg { function: FUNCTION_SOLVE operands { handle: 1 } "
      "operands { handle: 10 } } outputs { handle: 100 } }";

  void Add(const std::string& id, std::function<Routine()> make) {
    rows_->push_back({id, std::move(make)});
  }

  template <typename T>
  void AddCholesky(const std::string& id, DType dtype, int n) {
    Add(id, [=, libraries = libraries_] {
      const int64_t bytes = static_cast<int64_t>(sizeof(T)) * n * n;
      return Routine{
          .what = Substitute("cholesky of $0^2, float$1", n, sizeof(T) * 8),
          .operations = One("linalg { function: FUNCTION_CHOLESKY operands { handle: 1 } }"),
          .inputs = {Definite<T>(dtype, {n, n})},
          .moved = 2 * bytes,
          .baseline_name = kCusolver,
          .baseline = [=](const Places& at) -> Enqueue {
            const int elements = libraries->cusolver().CholeskyElements(dtype, n);
            const auto work = cub_work::Allocate(static_cast<int64_t>(sizeof(T)) * elements);
            const auto error = cub_work::Allocate(4);
            return [=] {
              libraries->copy(at.result, at.inputs[0], bytes);
              libraries->cusolver().Cholesky(dtype,
                                             {.side = n,
                                              .address = at.result,
                                              .work = AddressOf(work),
                                              .error = AddressOf(error)},
                                             elements);
            };
          },
          .judge = LowerNear<T>(n, sizeof(T) == 4 ? 1e-4 : 1e-12)};
    });
  }

  void AddSolve(const std::string& id, int n) {
    Add(id, [=, libraries = libraries_] {
      const int64_t bytes = int64_t{8} * n * n;
      return Routine{.what = Substitute("solve of $0^2, float64", n),
                     .operations = FirstColumn(1) + kSolve,
                     .inputs = {Definite<double>(DType::kFloat64, {n, n})},
                     .moved = bytes + int64_t{16} * n,
                     .baseline_name = kCusolver,
                     .baseline = [=](const Places& at) -> Enqueue {
                       const auto matrix = cub_work::Allocate(bytes);
                       const auto work =
                           cub_work::Allocate(int64_t{8} * libraries->cusolver().SolveElements(n));
                       const auto pivots = cub_work::Allocate(4 * n);
                       const auto error = cub_work::Allocate(4);
                       return [=] {
                         libraries->copy(AddressOf(matrix), at.inputs[0], bytes);
                         // The matrix is symmetric: its first column is its first row.
                         libraries->copy(at.result, at.inputs[0], int64_t{8} * n);
                         libraries->cusolver().Solve({.side = n,
                                                      .address = AddressOf(matrix),
                                                      .work = AddressOf(work),
                                                      .pivots = AddressOf(pivots),
                                                      .error = AddressOf(error)},
                                                     at.result, 1);
                       };
                     },
                     .judge = Near<double>(1e-11)};
    });
  }

  const bool quick_;
  Libraries* const libraries_;
  std::vector<NamedRoutine>* const rows_;
};

}  // namespace

void AddLinearRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  Maker maker(quick, libraries, rows);
  maker.Products();
  maker.ProductsOfBytes();
  maker.Factors();
  maker.Systems();
}

}  // namespace stride::bench
