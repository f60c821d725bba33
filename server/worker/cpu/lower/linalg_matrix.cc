#include "server/worker/cpu/lower/linalg_matrix.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/worker/cpu/lower/lapack.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

using codegen::RoutineFault;
using Launch = wire::LinalgLaunch;
using lapack::Real;

// Memory for one call; data() is null when there is none.
template <typename T>
class Items {
 public:
  explicit Items(int64_t rows, int64_t columns = 1) {
    uint64_t count = 0;
    const bool fits = rows >= 0 && columns >= 0 &&
                      !__builtin_mul_overflow(std::max<int64_t>(rows, 1),
                                              std::max<int64_t>(columns, 1), &count) &&
                      count < std::numeric_limits<int64_t>::max() / sizeof(T);
    bytes_ = fits ? count * sizeof(T) : std::numeric_limits<uint64_t>::max() / kMostParts;
    if (fits) memory_ = AllocateScratch(bytes_);
  }
  bool ok() const { return memory_ != nullptr; }
  uint64_t bytes() const { return bytes_; }
  T* data() const { return reinterpret_cast<T*>(memory_.get()); }

 private:
  static constexpr uint64_t kMostParts = 16;  // most Items per call; bounds the sum of their bytes

  uint64_t bytes_ = 0;
  ScratchMemory memory_;
};

// The error for these Items of one call.
template <typename... T>
absl::Status NoMemory(const Items<T>&... parts) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "no memory for a matrix in the library's order and what it works in: ", (parts.bytes() + ...),
      " bytes"));
}

template <typename T>
T* ElementOf(const MatrixView& m, int64_t i, int64_t j) {
  return reinterpret_cast<T*>(m.data + i * m.row_stride + j * m.column_stride);
}

template <typename T>
void CopyIn(const MatrixView& from, T* to) {
  for (int64_t j = 0; j < from.columns; ++j)
    for (int64_t i = 0; i < from.rows; ++i) *to++ = *ElementOf<T>(from, i, j);
}

// Copies a column-major matrix with columns `leading` apart to the rows of `to`.
template <typename T>
void CopyOut(const T* from, int64_t leading, const MatrixView& to) {
  for (int64_t i = 0; i < to.rows; ++i)
    for (int64_t j = 0; j < to.columns; ++j) *ElementOf<T>(to, i, j) = from[i + j * leading];
}

enum class Triangle { kLower, kUpper };

// The same, with zeros in the other triangle.
template <typename T>
void CopyTriangle(const T* from, int64_t leading, Triangle triangle, const MatrixView& to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    for (int64_t j = 0; j < to.columns; ++j) {
      const bool kept = triangle == Triangle::kLower ? j <= i : j >= i;
      *ElementOf<T>(to, i, j) = kept ? from[i + j * leading] : T(0);
    }
  }
}

template <typename T>
void SetIdentity(const MatrixView& to) {
  for (int64_t i = 0; i < to.rows; ++i)
    for (int64_t j = 0; j < to.columns; ++j) *ElementOf<T>(to, i, j) = T(i == j ? 1 : 0);
}

// A routine's work memory.
template <typename T>
struct WorkMemory {
  explicit WorkMemory(const lapack::WorkSize& size)
      : work(size.work), real(size.real_work), integer(size.int_work), size(size) {}
  absl::Status Check() const {
    for (int64_t count : {size.work, size.real_work, size.int_work}) {
      if (count >= 0 && count <= std::numeric_limits<int32_t>::max()) continue;
      return absl::UnimplementedError(
          "the CPU device's LAPACK counts in 32 bits, too few for a matrix as large");
    }
    return work.ok() && real.ok() && integer.ok() ? absl::OkStatus()
                                                  : NoMemory(work, real, integer);
  }
  lapack::Work<T> Get() const { return {work.data(), real.data(), integer.data(), size}; }

  Items<T> work;
  Items<Real<T>> real;
  Items<int32_t> integer;
  lapack::WorkSize size;
};

// LAPACK computes sizes in 32 bits, so check `n` squared times `factor` first.
absl::Status CheckSquare(int64_t n, int64_t factor) {
  if (n * n < std::numeric_limits<int32_t>::max() / factor) return absl::OkStatus();
  return absl::UnimplementedError(
      "the CPU device's LAPACK counts in 32 bits, too few for a matrix as large");
}

template <typename T>
class Solver {
 public:
  Solver(const LinalgProblem& p, absl::Span<const MatrixView> inputs,
         absl::Span<const MatrixView> outputs, LinalgFinding* finding)
      : p_(p), inputs_(inputs), outputs_(outputs), finding_(*finding) {}

  absl::Status Run() {
    if (p_.m == 0 || p_.n == 0) return RunEmpty();
    switch (p_.function) {
      case Launch::FUNCTION_CHOLESKY:
        return Cholesky();
      case Launch::FUNCTION_QR:
        return Qr();
      case Launch::FUNCTION_SVD:
        return Svd();
      case Launch::FUNCTION_EIGH:
        return Eigh();
      case Launch::FUNCTION_EIG:
        return Eig();
      case Launch::FUNCTION_INVERSE:
      case Launch::FUNCTION_SOLVE:
        return Solve();
      case Launch::FUNCTION_LU:
        return Lu();
      default:
        break;
    }
    return absl::InternalError("no such function of linear algebra");
  }

 private:
  // For a matrix without elements only square orthogonal factors have elements.
  absl::Status RunEmpty() {
    for (const MatrixView& output : outputs_) {
      if (output.rows == output.columns) SetIdentity<T>(output);
    }
    return absl::OkStatus();
  }

  absl::Status Cholesky() {
    Items<T> a(p_.n, p_.n);
    if (!a.ok()) return NoMemory(a);
    CopyIn(inputs_[0], a.data());
    const int info = lapack::Potrf(p_.upper ? 'U' : 'L', p_.n, a.data());
    if (absl::Status s = Note(info, RoutineFault::kNotPositiveDefinite); !s.ok()) return s;
    CopyTriangle(a.data(), p_.n, p_.upper ? Triangle::kUpper : Triangle::kLower, outputs_[0]);
    return absl::OkStatus();
  }

  absl::Status Qr() {
    const int least = std::min(p_.m, p_.n);
    const int columns = p_.values_only ? 0 : (p_.full ? p_.m : least);
    Items<T> a(p_.m, std::max(p_.n, columns)), tau(least);
    WorkMemory<T> work(lapack::QrWork<T>(p_.m, p_.n, columns));
    if (absl::Status s = work.Check(); !s.ok()) return s;
    if (!a.ok() || !tau.ok()) return NoMemory(a, tau);
    CopyIn(inputs_[0], a.data());
    int info = lapack::Geqrf(p_.m, p_.n, a.data(), tau.data(), work.Get());
    if (absl::Status s = Note(info, RoutineFault::kNotConverged); !s.ok()) return s;
    // With `full` R has rows of zeros at the bottom, which CopyTriangle writes.
    CopyTriangle(a.data(), p_.m, Triangle::kUpper, outputs_[p_.values_only ? 0 : 1]);
    if (p_.values_only) return absl::OkStatus();
    info = lapack::Orgqr(p_.m, columns, std::min(least, columns), a.data(), tau.data(), work.Get());
    if (absl::Status s = Note(info, RoutineFault::kNotConverged); !s.ok()) return s;
    CopyOut(a.data(), p_.m, outputs_[0]);
    return absl::OkStatus();
  }

  absl::Status Svd() {
    const int least = std::min(p_.m, p_.n);
    const char vectors = p_.values_only ? 'N' : (p_.full ? 'A' : 'S');
    if (absl::Status s = CheckSquare(least, p_.values_only ? 1 : 8); !s.ok()) return s;
    const int columns = p_.values_only ? 0 : (p_.full ? p_.m : least);
    const int rows = p_.values_only ? 0 : (p_.full ? p_.n : least);
    Items<T> a(p_.m, p_.n), u(p_.m, columns), vt(rows, p_.n);
    Items<Real<T>> s(least);
    WorkMemory<T> work(lapack::SvdWork<T>(vectors, p_.m, p_.n));
    if (absl::Status status = work.Check(); !status.ok()) return status;
    if (!a.ok() || !u.ok() || !vt.ok() || !s.ok()) return NoMemory(a, u, vt, s);
    CopyIn(inputs_[0], a.data());
    const int info = lapack::Gesdd(vectors, p_.m, p_.n, a.data(), s.data(), u.data(), p_.m,
                                   vt.data(), std::max(rows, 1), work.Get());
    // Gesdd returns -4 for NaN.
    absl::Status status = Note(info == -4 ? 1 : info, RoutineFault::kNotConverged);
    if (!status.ok()) return status;
    CopyOut(s.data(), least, outputs_[p_.values_only ? 0 : 1]);
    if (p_.values_only) return absl::OkStatus();
    CopyOut(u.data(), p_.m, outputs_[0]);
    CopyOut(vt.data(), rows, outputs_[2]);
    return absl::OkStatus();
  }

  absl::Status Eigh() {
    const char vectors = p_.values_only ? 'N' : 'V', triangle = p_.upper ? 'U' : 'L';
    if (absl::Status s = CheckSquare(p_.n, p_.values_only ? 1 : 3); !s.ok()) return s;
    Items<T> a(p_.n, p_.n);
    Items<Real<T>> w(p_.n);
    WorkMemory<T> work(lapack::EighWork<T>(vectors, triangle, p_.n));
    if (absl::Status s = work.Check(); !s.ok()) return s;
    if (!a.ok() || !w.ok()) return NoMemory(a, w);
    CopyIn(inputs_[0], a.data());
    const int info = lapack::Syevd(vectors, triangle, p_.n, a.data(), w.data(), work.Get());
    if (absl::Status s = Note(info, RoutineFault::kNotConverged); !s.ok()) return s;
    CopyOut(w.data(), p_.n, outputs_[0]);
    if (!p_.values_only) CopyOut(a.data(), p_.n, outputs_[1]);
    return absl::OkStatus();
  }

  absl::Status Eig() {
    using Complex = std::complex<Real<T>>;
    constexpr bool is_complex = !std::is_same_v<T, Real<T>>;
    const char vectors = p_.values_only ? 'N' : 'V';
    if (absl::Status s = CheckSquare(p_.n, 1); !s.ok()) return s;
    const int columns = p_.values_only ? 0 : p_.n;
    Items<T> a(p_.n, p_.n), w(p_.n, 2), right(columns, columns);
    WorkMemory<T> work(lapack::EigWork<T>(vectors, p_.n));
    if (absl::Status s = work.Check(); !s.ok()) return s;
    if (!a.ok() || !w.ok() || !right.ok()) return NoMemory(a, w, right);
    CopyIn(inputs_[0], a.data());
    // Geev may not terminate for values that are not finite.
    const bool finite = std::all_of(a.data(), a.data() + int64_t{p_.n} * p_.n, [](const T& x) {
      return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
    });
    const int info =
        finite ? lapack::Geev(vectors, p_.n, a.data(), w.data(), right.data(), work.Get()) : 1;
    if (absl::Status s = Note(info, RoutineFault::kNotConverged); !s.ok() || info != 0) return s;
    if constexpr (is_complex) {
      CopyOut(w.data(), p_.n, outputs_[0]);
      if (!p_.values_only) CopyOut(right.data(), p_.n, outputs_[1]);
      return absl::OkStatus();
    }
    // A real matrix has real eigenvalues and conjugate pairs.
    for (int j = 0; j < p_.n; ++j) {
      const Real<T> imaginary = std::real(w.data()[p_.n + j]);
      *ElementOf<Complex>(outputs_[0], j, 0) = Complex(std::real(w.data()[j]), imaginary);
      if (p_.values_only) continue;
      const int first = imaginary < 0 ? j - 1 : j;
      for (int i = 0; i < p_.n; ++i) {
        const Real<T> re = std::real(right.data()[i + int64_t{first} * p_.n]);
        const Real<T> im =
            imaginary == 0 ? 0 : std::real(right.data()[i + int64_t{first + 1} * p_.n]);
        *ElementOf<Complex>(outputs_[1], i, j) = Complex(re, imaginary < 0 ? -im : im);
      }
    }
    return absl::OkStatus();
  }

  // The inverse is the solution for the identity.
  absl::Status Solve() {
    const bool inverse = p_.function == Launch::FUNCTION_INVERSE;
    const int columns = inverse ? p_.n : p_.k;
    Items<T> a(p_.n, p_.n), b(p_.n, columns);
    Items<int32_t> pivots(p_.n);
    if (!a.ok() || !b.ok() || !pivots.ok()) return NoMemory(a, b, pivots);
    CopyIn(inputs_[0], a.data());
    const auto item = static_cast<int64_t>(sizeof(T));
    if (inverse) {
      SetIdentity<T>({reinterpret_cast<std::byte*>(b.data()), p_.n, p_.n, item, p_.n * item});
    } else {
      CopyIn(inputs_[1], b.data());
    }
    int info = lapack::Getrf(p_.n, p_.n, a.data(), pivots.data());
    if (absl::Status s = Note(info, RoutineFault::kSingular); !s.ok()) return s;
    if (info == 0 && columns > 0)
      info = lapack::Getrs(p_.n, columns, a.data(), pivots.data(), b.data());
    if (absl::Status s = Note(info, RoutineFault::kSingular); !s.ok()) return s;
    CopyOut(b.data(), p_.n, outputs_[0]);
    return absl::OkStatus();
  }

  absl::Status Lu() {
    const int least = std::min(p_.m, p_.n);
    Items<T> a(p_.m, p_.n);
    Items<int32_t> pivots(least);
    if (!a.ok() || !pivots.ok()) return NoMemory(a, pivots);
    CopyIn(inputs_[0], a.data());
    // Above 0: a zero on U's diagonal, which is valid for a singular matrix.
    const int info = lapack::Getrf(p_.m, p_.n, a.data(), pivots.data());
    if (info < 0) return Note(info, RoutineFault::kSingular);
    CopyOut(a.data(), p_.m, outputs_[0]);
    for (int i = 0; i < least; ++i) *ElementOf<int64_t>(outputs_[1], i, 0) = pivots.data()[i];
    return absl::OkStatus();
  }

  // The outputs of a matrix at fault are undefined, so computation may continue.
  absl::Status Note(int info, RoutineFault::Kind kind) {
    if (info < 0) return absl::InternalError("LAPACK refused an argument");
    if (info > 0 && finding_.kind == RoutineFault::kNone) finding_ = {kind, info};
    return absl::OkStatus();
  }

  const LinalgProblem& p_;
  const absl::Span<const MatrixView> inputs_, outputs_;
  LinalgFinding& finding_;
};

}  // namespace

absl::Status ComputeLinalg(const LinalgProblem& problem, absl::Span<const MatrixView> inputs,
                           absl::Span<const MatrixView> outputs, LinalgFinding* finding) {
  switch (problem.dtype) {
    case DType::kFloat32:
      return Solver<float>(problem, inputs, outputs, finding).Run();
    case DType::kFloat64:
      return Solver<double>(problem, inputs, outputs, finding).Run();
    case DType::kComplex64:
      return Solver<std::complex<float>>(problem, inputs, outputs, finding).Run();
    case DType::kComplex128:
      return Solver<std::complex<double>>(problem, inputs, outputs, finding).Run();
    default:
      return absl::InternalError("linear algebra of a dtype that LAPACK has not");
  }
}

}  // namespace stride::cpu
