#include "server/worker/cpu/lower/blas.h"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// The library counts in 32 bits: larger matrices are processed in blocks.
constexpr int64_t kMaxExtent = 1 << 30;

struct Layout {
  CBLAS_TRANSPOSE transpose;
  int leading;  // elements between rows (or columns, when transposed)
};

// One stride must be an element, the other a positive multiple of it that is at least the line's
// length.
std::optional<int> LeadingDimension(int64_t stride, int64_t item, int64_t length, int64_t count) {
  if (count <= 1) return static_cast<int>(std::max<int64_t>(length, 1));
  if (stride % item != 0 || stride / item < std::max<int64_t>(length, 1)) return std::nullopt;
  if (stride / item > INT32_MAX) return std::nullopt;
  return static_cast<int>(stride / item);
}

std::optional<Layout> FitLayout(const MatrixView& m, int64_t item) {
  if (m.column_stride == item || m.columns <= 1) {
    if (auto leading = LeadingDimension(m.row_stride, item, m.columns, m.rows)) {
      return Layout{CblasNoTrans, *leading};
    }
  }
  if (m.row_stride == item || m.rows <= 1) {
    if (auto leading = LeadingDimension(m.column_stride, item, m.rows, m.columns)) {
      return Layout{CblasTrans, *leading};
    }
  }
  return std::nullopt;
}

template <typename T>
void CopyTo(const MatrixView& from, T* to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    const std::byte* row = from.data + i * from.row_stride;
    for (int64_t j = 0; j < from.columns; ++j) {
      std::memcpy(to++, row + j * from.column_stride, sizeof(T));
    }
  }
}

// A matrix in a layout that BLAS supports: in place, or a copy owned by this object.
template <typename T>
class BlasOperand {
 public:
  explicit BlasOperand(const MatrixView& m) : data_(reinterpret_cast<const T*>(m.data)) {
    std::optional<Layout> layout = FitLayout(m, sizeof(T));
    if (layout.has_value()) {
      layout_ = *layout;
      return;
    }
    copy_ = AllocateScratch(sizeof(T) * m.rows * m.columns);
    data_ = reinterpret_cast<const T*>(copy_.get());
    layout_ = {CblasNoTrans, static_cast<int>(m.columns)};
    if (copy_) CopyTo(m, reinterpret_cast<T*>(copy_.get()));
  }
  bool ok() const { return data_ != nullptr; }
  const T* data() const { return data_; }
  CBLAS_TRANSPOSE transpose() const { return layout_.transpose; }
  int leading() const { return layout_.leading; }

 private:
  ScratchMemory copy_;
  const T* data_;
  Layout layout_;
};

struct Sizes {
  int m, n, k;
};

void Gemm(const BlasOperand<float>& a, const BlasOperand<float>& b, Sizes s, float beta, float* c,
          int ldc) {
  cblas_sgemm(CblasRowMajor, a.transpose(), b.transpose(), s.m, s.n, s.k, 1, a.data(), a.leading(),
              b.data(), b.leading(), beta, c, ldc);
}
void Gemm(const BlasOperand<double>& a, const BlasOperand<double>& b, Sizes s, double beta,
          double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, a.transpose(), b.transpose(), s.m, s.n, s.k, 1, a.data(), a.leading(),
              b.data(), b.leading(), beta, c, ldc);
}
template <typename T>
void Gemm(const BlasOperand<std::complex<T>>& a, const BlasOperand<std::complex<T>>& b, Sizes s,
          std::complex<T> beta, std::complex<T>* c, int ldc) {
  constexpr auto kGemm = sizeof(T) == 4 ? cblas_cgemm : cblas_zgemm;
  const std::complex<T> one = 1;
  kGemm(CblasRowMajor, a.transpose(), b.transpose(), s.m, s.n, s.k, &one, a.data(), a.leading(),
        b.data(), b.leading(), &beta, c, ldc);
}

// Matrix times vector, where the library's matrix product would first copy the whole matrix. False:
// not applicable. A vector times a matrix is the same with both transposed.
template <typename T>
bool MultiplyVector(const MatrixView& left, const MatrixView& right, const MatrixView& output,
                    T beta) {
  if constexpr (std::is_floating_point_v<T>) {
    if (output.columns != 1 || right.row_stride % static_cast<int64_t>(sizeof(T)) != 0)
      return false;
    int64_t step = right.row_stride / static_cast<int64_t>(sizeof(T));
    int64_t output_step = output.rows > 1 ? output.row_stride / static_cast<int64_t>(sizeof(T)) : 1;
    std::optional<Layout> layout = FitLayout(left, sizeof(T));
    if (!layout.has_value() || step < 1 || step > INT32_MAX || output_step > INT32_MAX)
      return false;
    bool transposed = layout->transpose == CblasTrans;
    int rows = static_cast<int>(transposed ? left.columns : left.rows);
    int columns = static_cast<int>(transposed ? left.rows : left.columns);
    const T* a = reinterpret_cast<const T*>(left.data);
    const T* x = reinterpret_cast<const T*>(right.data);
    T* y = reinterpret_cast<T*>(output.data);
    int incx = static_cast<int>(step), incy = static_cast<int>(output_step);
    if constexpr (sizeof(T) == 4) {
      cblas_sgemv(CblasRowMajor, layout->transpose, rows, columns, 1, a, layout->leading, x, incx,
                  beta, y, incy);
    } else {
      cblas_dgemv(CblasRowMajor, layout->transpose, rows, columns, 1, a, layout->leading, x, incx,
                  beta, y, incy);
    }
    return true;
  }
  return false;
}

template <typename T>
absl::Status MultiplyBlock(const MatrixView& left, const MatrixView& right,
                           const MatrixView& output, T beta) {
  if (MultiplyVector<T>(left, right, output, beta) ||
      (output.rows == 1 &&
       MultiplyVector<T>(right.Transposed(), left.Transposed(), output.Transposed(), beta))) {
    return absl::OkStatus();
  }
  BlasOperand<T> a(left), b(right);
  if (!a.ok() || !b.ok()) return absl::ResourceExhaustedError("no memory to copy a strided matrix");
  int64_t leading =
      output.rows > 1 ? output.row_stride / static_cast<int64_t>(sizeof(T)) : output.columns;
  Gemm(a, b,
       {static_cast<int>(output.rows), static_cast<int>(output.columns),
        static_cast<int>(left.columns)},
       beta, reinterpret_cast<T*>(output.data), static_cast<int>(leading));
  return absl::OkStatus();
}

void SetZero(const MatrixView& output, int64_t item) {
  for (int64_t i = 0; i < output.rows; ++i) {
    std::memset(output.data + i * output.row_stride, 0, output.columns * item);
  }
}

template <typename T>
absl::Status Multiply(const MatrixView& left, const MatrixView& right, const MatrixView& output,
                      bool accumulate) {
  int64_t inner = left.columns;
  if (inner == 0 && !accumulate) SetZero(output, sizeof(T));
  for (int64_t i = 0; i < output.rows; i += kMaxExtent) {
    int64_t m = std::min(kMaxExtent, output.rows - i);
    for (int64_t j = 0; j < output.columns; j += kMaxExtent) {
      int64_t n = std::min(kMaxExtent, output.columns - j);
      for (int64_t l = 0; l < inner; l += kMaxExtent) {
        int64_t k = std::min(kMaxExtent, inner - l);
        absl::Status s = MultiplyBlock<T>(left.Block(i, l, m, k), right.Block(l, j, k, n),
                                          output.Block(i, j, m, n), T(accumulate || l > 0 ? 1 : 0));
        if (!s.ok()) return s;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MultiplyByBlas(DType dtype, const MatrixView& left, const MatrixView& right,
                            const MatrixView& output, bool accumulate) {
  switch (dtype) {
    case DType::kFloat32:
      return Multiply<float>(left, right, output, accumulate);
    case DType::kFloat64:
      return Multiply<double>(left, right, output, accumulate);
    case DType::kComplex64:
      return Multiply<std::complex<float>>(left, right, output, accumulate);
    case DType::kComplex128:
      return Multiply<std::complex<double>>(left, right, output, accumulate);
    default:
      return absl::InternalError("no vendor matrix product of this dtype");
  }
}

void StartBlasThreads(int num_threads) {
  openblas_set_num_threads(num_threads);
  openblas_set_num_threads(1);
}

void SetBlasThreads(int num_threads) {
  // OpenMP's runtime ends idle threads, and a sealed process cannot start new ones.
  if (openblas_get_parallel() != OPENBLAS_THREAD) num_threads = 1;
  // The setter takes a lock and may start threads: call it only for a change.
  if (openblas_get_num_threads() != num_threads) openblas_set_num_threads(num_threads);
}

std::string_view BetterBlasCore(std::string_view chosen, const VectorSets& sets) {
  constexpr std::string_view kWithoutAvx2[] = {"Prescott",    "Core2",     "Penryn",  "Dunnington",
                                               "Nehalem",     "Atom",      "Generic", "Unknown",
                                               "Sandybridge", "Barcelona", "Opteron"};
  const bool is_old =
      std::find(std::begin(kWithoutAvx2), std::end(kWithoutAvx2), chosen) != std::end(kWithoutAvx2);
  if (!is_old || !sets.avx2) return {};
  return sets.avx512 ? "SkylakeX" : "Haswell";
}

void ChooseBlasCore(char** argv) {
#if defined(__x86_64__)
  constexpr char kVariable[] = "OPENBLAS_CORETYPE";
  if (std::getenv(kVariable) != nullptr) return;
  const VectorSets sets = {
      .avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
      .avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl"),
  };
  const std::string_view core = BetterBlasCore(openblas_get_corename(), sets);
  if (core.empty()) return;
  setenv(kVariable, std::string(core).c_str(), /*overwrite=*/1);
  execv("/proc/self/exe", argv);
  unsetenv(kVariable);  // the library continues with slower kernels
#else
  (void)argv;
#endif
}

}  // namespace stride::cpu
