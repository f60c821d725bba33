#include "server/worker/cuda/lower/batch_solver.h"

#include <cublas_api.h>
#include <cusolverDn.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/dynamic_library.h"
#include "server/worker/cuda/lower/element_types.h"

namespace stride::cuda {

#define STRIDE_BLAS_FUNCTIONS(X) \
  X(cublasCreate_v2)             \
  X(cublasDestroy_v2)            \
  X(cublasSetStream_v2)          \
  X(cublasSgetrfBatched)         \
  X(cublasDgetrfBatched)         \
  X(cublasCgetrfBatched)         \
  X(cublasZgetrfBatched)         \
  X(cublasSgetrsBatched) X(cublasDgetrsBatched) X(cublasCgetrsBatched) X(cublasZgetrsBatched)

#define STRIDE_BATCH_FUNCTIONS(X)        \
  X(cusolverDnCreate)                    \
  X(cusolverDnDestroy)                   \
  X(cusolverDnSetStream)                 \
  X(cusolverDnCreateParams)              \
  X(cusolverDnDestroyParams)             \
  X(cusolverDnCreateGesvdjInfo)          \
  X(cusolverDnDestroyGesvdjInfo)         \
  X(cusolverDnSpotrfBatched)             \
  X(cusolverDnDpotrfBatched)             \
  X(cusolverDnCpotrfBatched)             \
  X(cusolverDnZpotrfBatched)             \
  X(cusolverDnSgesvdjBatched)            \
  X(cusolverDnDgesvdjBatched)            \
  X(cusolverDnCgesvdjBatched)            \
  X(cusolverDnZgesvdjBatched)            \
  X(cusolverDnSgesvdjBatched_bufferSize) \
  X(cusolverDnDgesvdjBatched_bufferSize) \
  X(cusolverDnCgesvdjBatched_bufferSize) X(cusolverDnZgesvdjBatched_bufferSize)

// Null where the installed library lacks them.
#if defined(CUSOLVER_VERSION) && CUSOLVER_VERSION >= 11701
#define STRIDE_HAS_SYEV_BATCHED 1
#define STRIDE_OPTIONAL_BATCH_FUNCTIONS(X) \
  X(cusolverDnXsyevBatched_bufferSize) X(cusolverDnXsyevBatched)
#else
#define STRIDE_HAS_SYEV_BATCHED 0
#define STRIDE_OPTIONAL_BATCH_FUNCTIONS(X)
#endif

struct BatchSolver::Functions {
#define STRIDE_DECLARE(name) decltype(&::name) name = nullptr;
  STRIDE_BLAS_FUNCTIONS(STRIDE_DECLARE)
  STRIDE_BATCH_FUNCTIONS(STRIDE_DECLARE)
  STRIDE_OPTIONAL_BATCH_FUNCTIONS(STRIDE_DECLARE)
#undef STRIDE_DECLARE
};

namespace {

// Both libraries report success as 0.
absl::Status StatusOf(int status, int no_memory, int unsupported, std::string_view library,
                      std::string_view doing) {
  if (status == 0) return absl::OkStatus();
  absl::StatusCode code = absl::StatusCode::kInternal;
  if (status == no_memory) code = absl::StatusCode::kResourceExhausted;
  if (status == unsupported) code = absl::StatusCode::kUnimplemented;
  return absl::Status(
      code, absl::StrCat(std::string(library), " error ", status, " while ", std::string(doing)));
}
absl::Status BlasStatus(cublasStatus_t status, std::string_view doing) {
  return StatusOf(status, CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_SUPPORTED, "cuBLAS", doing);
}
absl::Status SolverStatus(cusolverStatus_t status, std::string_view doing) {
  return StatusOf(status, CUSOLVER_STATUS_ALLOC_FAILED, CUSOLVER_STATUS_NOT_SUPPORTED, "cuSOLVER",
                  doing);
}

constexpr std::string_view kAsking = "asking for work memory";

cublasHandle_t BlasHandle(void* handle) { return static_cast<cublasHandle_t>(handle); }
cusolverDnHandle_t SolverHandle(void* handle) { return static_cast<cusolverDnHandle_t>(handle); }
cusolverDnParams_t Parameters(void* parameters) {
  return static_cast<cusolverDnParams_t>(parameters);
}
gesvdjInfo_t Jacobi(void* info) { return static_cast<gesvdjInfo_t>(info); }

template <typename T>
T* Pointer(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

cusolverEigMode_t EigMode(bool vectors) {
  return vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}
cublasFillMode_t Triangle(bool upper) {
  return upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

// `apply(element, real number, s, d, c or z)` with the function of the dtype.
template <typename S, typename D, typename C, typename Z, typename Apply>
auto WithFunction(DType dtype, S s, D d, C c, Z z, Apply apply) {
  switch (dtype) {
    case DType::kFloat64:
      return apply(double{}, double{}, d);
    case DType::kComplex64:
      return apply(cuComplex{}, float{}, c);
    case DType::kComplex128:
      return apply(cuDoubleComplex{}, double{}, z);
    default:
      return apply(float{}, float{}, s);
  }
}
#define STRIDE_OF_DTYPE(f, prefix, name) \
  (f).prefix##S##name, (f).prefix##D##name, (f).prefix##C##name, (f).prefix##Z##name

SolverRoutine SvdRoutine(DType dtype, int64_t m, int64_t n, int64_t count) {
  return {"cuSOLVER's gesvdjBatched", dtype, m, n, count, 'V'};
}
#if STRIDE_HAS_SYEV_BATCHED
SolverRoutine EighRoutine(DType dtype, bool vectors, bool upper, int64_t n, int64_t count) {
  return {"cusolverDnXsyevBatched", dtype, n, n, count, vectors ? 'V' : 'N', upper};
}
#endif

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSolver>> BatchSolver::Open(const Driver& driver,
                                                               CUstream stream) {
  auto blas = DynamicLibrary::Open("cuBLAS library", {"libcublas.so.13", "libcublas.so.12"});
  auto solver =
      DynamicLibrary::Open("cuSOLVER library", {"libcusolver.so.12", "libcusolver.so.11"});
  for (const absl::Status& status : {blas.status(), solver.status()}) {
    if (status.ok()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "linear algebra on a GPU needs cuBLAS and cuSOLVER: ", std::string(status.message())));
  }
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
#define STRIDE_RESOLVE_BLAS(name)                                           \
  functions->name = reinterpret_cast<decltype(&::name)>(blas->Find(#name)); \
  if (functions->name == nullptr) missing = #name;
#define STRIDE_RESOLVE(name)                                                  \
  functions->name = reinterpret_cast<decltype(&::name)>(solver->Find(#name)); \
  if (functions->name == nullptr) missing = #name;
  STRIDE_BLAS_FUNCTIONS(STRIDE_RESOLVE_BLAS)
  STRIDE_BATCH_FUNCTIONS(STRIDE_RESOLVE)
#undef STRIDE_RESOLVE_BLAS
#undef STRIDE_RESOLVE
#define STRIDE_RESOLVE_OPTIONAL(name) \
  functions->name = reinterpret_cast<decltype(&::name)>(solver->Find(#name));
  STRIDE_OPTIONAL_BATCH_FUNCTIONS(STRIDE_RESOLVE_OPTIONAL)
#undef STRIDE_RESOLVE_OPTIONAL
  if (missing != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the cuBLAS or cuSOLVER library is too old: it has no ", missing));
  }
  std::unique_ptr<BatchSolver> made(new BatchSolver(driver, stream, std::move(functions)));
  if (absl::Status s = made->Start(); !s.ok()) return s;
  return made;
}

BatchSolver::BatchSolver(const Driver& driver, CUstream stream,
                         std::unique_ptr<Functions> functions)
    : driver_(driver), stream_(stream), functions_(std::move(functions)) {}

BatchSolver::~BatchSolver() {
  if (jacobi_ != nullptr) functions_->cusolverDnDestroyGesvdjInfo(Jacobi(jacobi_));
  if (parameters_ != nullptr) functions_->cusolverDnDestroyParams(Parameters(parameters_));
  if (solver_ != nullptr) functions_->cusolverDnDestroy(SolverHandle(solver_));
  if (blas_ != nullptr) functions_->cublasDestroy_v2(BlasHandle(blas_));
}

absl::Status BatchSolver::Start() {
  constexpr std::string_view kStarting = "starting the library";
  cublasHandle_t blas = nullptr;
  absl::Status status = BlasStatus(functions_->cublasCreate_v2(&blas), kStarting);
  blas_ = blas;
  if (status.ok()) status = BlasStatus(functions_->cublasSetStream_v2(blas, stream_), kStarting);
  cusolverDnHandle_t solver = nullptr;
  if (status.ok()) status = SolverStatus(functions_->cusolverDnCreate(&solver), kStarting);
  solver_ = solver;
  if (status.ok())
    status = SolverStatus(functions_->cusolverDnSetStream(solver, stream_), kStarting);
  cusolverDnParams_t parameters = nullptr;
  if (status.ok())
    status = SolverStatus(functions_->cusolverDnCreateParams(&parameters), kStarting);
  parameters_ = parameters;
  gesvdjInfo_t jacobi = nullptr;
  if (status.ok())
    status = SolverStatus(functions_->cusolverDnCreateGesvdjInfo(&jacobi), kStarting);
  jacobi_ = jacobi;
  return status;
}

absl::Status BatchSolver::Cholesky(DType dtype, bool upper, int64_t n, CUdeviceptr pointers,
                                   CUdeviceptr infos, int64_t count) {
  return WithFunction(
      dtype, STRIDE_OF_DTYPE(*functions_, cusolverDn, potrfBatched),
      [&](auto element, auto, auto run) {
        using T = decltype(element);
        return SolverStatus(
            run(SolverHandle(solver_), Triangle(upper), static_cast<int>(n), Pointer<T*>(pointers),
                static_cast<int>(n), Pointer<int>(infos), static_cast<int>(count)),
            "factorizing positive definite matrices");
      });
}

absl::Status BatchSolver::Lu(DType dtype, int64_t n, CUdeviceptr pointers, CUdeviceptr pivots,
                             CUdeviceptr infos, int64_t count) {
  return WithFunction(
      dtype, STRIDE_OF_DTYPE(*functions_, cublas, getrfBatched), [&](auto element, auto, auto run) {
        using T = decltype(element);
        return BlasStatus(
            run(BlasHandle(blas_), static_cast<int>(n), Pointer<T*>(pointers), static_cast<int>(n),
                Pointer<int>(pivots), Pointer<int>(infos), static_cast<int>(count)),
            "factorizing matrices");
      });
}

absl::Status BatchSolver::SolveByLu(DType dtype, int64_t n, int64_t num_right,
                                    CUdeviceptr lu_pointers, CUdeviceptr pivots,
                                    CUdeviceptr right_pointers, int64_t count) {
  return WithFunction(
      dtype, STRIDE_OF_DTYPE(*functions_, cublas, getrsBatched), [&](auto element, auto, auto run) {
        using T = decltype(element);
        int wrong_argument = 0;
        return BlasStatus(
            run(BlasHandle(blas_), CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(num_right),
                Pointer<const T*>(lu_pointers), static_cast<int>(n), Pointer<int>(pivots),
                Pointer<T*>(right_pointers), static_cast<int>(n), &wrong_argument,
                static_cast<int>(count)),
            "solving systems");
      });
}

#if STRIDE_HAS_SYEV_BATCHED
bool BatchSolver::HasEigh() const {
  return functions_->cusolverDnXsyevBatched_bufferSize != nullptr &&
         functions_->cusolverDnXsyevBatched != nullptr;
}

absl::StatusOr<SolverWork> BatchSolver::EighWork(DType dtype, bool vectors, bool upper, int64_t n,
                                                 CUdeviceptr sample, int64_t count) {
  return SolverWork::AskFor(
      EighRoutine(dtype, vectors, upper, n, count), [&](size_t* device, size_t* host) {
        return SolverStatus(
            functions_->cusolverDnXsyevBatched_bufferSize(
                SolverHandle(solver_), Parameters(parameters_), EigMode(vectors), Triangle(upper),
                n, LibraryTypeOf(dtype), Pointer<void>(sample), n, RealTypeOf(dtype),
                Pointer<void>(sample), LibraryTypeOf(dtype), device, host, count),
            kAsking);
      });
}

absl::Status BatchSolver::Eigh(DType dtype, bool vectors, bool upper, int64_t n, CUdeviceptr a,
                               CUdeviceptr w, int64_t count, const Solver::Call& call) {
  absl::Status given = call.need.CheckGiven(EighRoutine(dtype, vectors, upper, n, count), call.work,
                                            call.work_bytes);
  if (!given.ok()) return given;
  if (call.need.host_bytes() > host_work_.size()) {
    driver_.cuStreamSynchronize(stream_);  // earlier calls may still read their memory
    host_work_.resize(call.need.host_bytes());
  }
  return SolverStatus(
      functions_->cusolverDnXsyevBatched(
          SolverHandle(solver_), Parameters(parameters_), EigMode(vectors), Triangle(upper), n,
          LibraryTypeOf(dtype), Pointer<void>(a), n, RealTypeOf(dtype), Pointer<void>(w),
          LibraryTypeOf(dtype), Pointer<void>(call.work), call.need.device_bytes(),
          call.need.host_bytes() > 0 ? host_work_.data() : nullptr, call.need.host_bytes(),
          Pointer<int>(call.info), count),
      "computing eigenvalues of matrices");
}
#else
bool BatchSolver::HasEigh() const { return false; }
absl::StatusOr<SolverWork> BatchSolver::EighWork(DType, bool, bool, int64_t, CUdeviceptr, int64_t) {
  return absl::InternalError("this worker was built without cusolverDnXsyevBatched");
}
absl::Status BatchSolver::Eigh(DType, bool, bool, int64_t, CUdeviceptr, CUdeviceptr, int64_t,
                               const Solver::Call&) {
  return absl::InternalError("this worker was built without cusolverDnXsyevBatched");
}
#endif

absl::StatusOr<SolverWork> BatchSolver::SvdWork(DType dtype, int64_t m, int64_t n,
                                                CUdeviceptr sample, int64_t count) {
  return WithFunction(
      dtype, STRIDE_OF_DTYPE(*functions_, cusolverDn, gesvdjBatched_bufferSize),
      [&](auto element, auto real, auto ask) {
        using T = decltype(element);
        using Real = decltype(real);
        return SolverWork::AskFor(
            SvdRoutine(dtype, m, n, count), [&](size_t* device, size_t* host) -> absl::Status {
              int elements = -1;
              const cusolverStatus_t asked = ask(
                  SolverHandle(solver_), EigMode(true), static_cast<int>(m), static_cast<int>(n),
                  Pointer<T>(sample), static_cast<int>(m), Pointer<Real>(sample),
                  Pointer<T>(sample), static_cast<int>(m), Pointer<T>(sample), static_cast<int>(n),
                  &elements, Jacobi(jacobi_), static_cast<int>(count));
              if (absl::Status s = SolverStatus(asked, kAsking); !s.ok()) return s;
              if (elements < 0) return absl::InternalError("gesvdjBatched named no work memory");
              *device = static_cast<size_t>(elements) * sizeof(T);
              *host = 0;
              return absl::OkStatus();
            });
      });
}

absl::Status BatchSolver::Svd(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr s,
                              CUdeviceptr u, CUdeviceptr v, int64_t count,
                              const Solver::Call& call) {
  absl::Status given =
      call.need.CheckGiven(SvdRoutine(dtype, m, n, count), call.work, call.work_bytes);
  if (!given.ok()) return given;
  return WithFunction(
      dtype, STRIDE_OF_DTYPE(*functions_, cusolverDn, gesvdjBatched),
      [&](auto element, auto real, auto run) {
        using T = decltype(element);
        using Real = decltype(real);
        return SolverStatus(
            run(SolverHandle(solver_), EigMode(true), static_cast<int>(m), static_cast<int>(n),
                Pointer<T>(a), static_cast<int>(m), Pointer<Real>(s), Pointer<T>(u),
                static_cast<int>(m), Pointer<T>(v), static_cast<int>(n), Pointer<T>(call.work),
                static_cast<int>(call.need.device_bytes() / sizeof(T)), Pointer<int>(call.info),
                Jacobi(jacobi_), static_cast<int>(count)),
            "computing singular values of matrices");
      });
}

}  // namespace stride::cuda
