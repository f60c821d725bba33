#include "server/worker/cuda/lower/solver.h"

#include <cusolverDn.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/dynamic_library.h"
#include "server/worker/cuda/lower/element_types.h"

namespace stride::cuda {

#define STRIDE_SOLVER_FUNCTIONS(X) \
  X(cusolverDnCreate)              \
  X(cusolverDnDestroy)             \
  X(cusolverDnSetStream)           \
  X(cusolverDnCreateParams)        \
  X(cusolverDnDestroyParams)       \
  X(cusolverDnXpotrf_bufferSize)   \
  X(cusolverDnXpotrf)              \
  X(cusolverDnXgetrf_bufferSize)   \
  X(cusolverDnXgetrf)              \
  X(cusolverDnXgetrs)              \
  X(cusolverDnXgeqrf_bufferSize)   \
  X(cusolverDnXgeqrf)              \
  X(cusolverDnXgesvd_bufferSize)   \
  X(cusolverDnXgesvd)              \
  X(cusolverDnXsyevd_bufferSize)   \
  X(cusolverDnXsyevd)              \
  X(cusolverDnSorgqr_bufferSize)   \
  X(cusolverDnDorgqr_bufferSize)   \
  X(cusolverDnCungqr_bufferSize)   \
  X(cusolverDnZungqr_bufferSize)   \
  X(cusolverDnSorgqr)              \
  X(cusolverDnDorgqr)              \
  X(cusolverDnCungqr)              \
  X(cusolverDnZungqr)

struct Solver::Functions {
#define STRIDE_DECLARE(name) decltype(&::name) name = nullptr;
  STRIDE_SOLVER_FUNCTIONS(STRIDE_DECLARE)
#undef STRIDE_DECLARE
};

namespace {

absl::Status SolverStatus(cusolverStatus_t status, std::string_view doing) {
  if (status == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  absl::StatusCode code = absl::StatusCode::kInternal;
  if (status == CUSOLVER_STATUS_ALLOC_FAILED) code = absl::StatusCode::kResourceExhausted;
  if (status == CUSOLVER_STATUS_NOT_SUPPORTED || status == CUSOLVER_STATUS_ARCH_MISMATCH)
    code = absl::StatusCode::kUnimplemented;
  return absl::Status(code, absl::StrCat("cuSOLVER error ", static_cast<int>(status), " while ",
                                         std::string(doing)));
}

cublasFillMode_t Triangle(bool upper) {
  return upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

template <typename T = void>
T* Pointer(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

int* Info(CUdeviceptr address) { return Pointer<int>(address); }

absl::StatusOr<SolverWork> Work(cusolverStatus_t status, size_t device, size_t host) {
  absl::Status asked = SolverStatus(status, "asking for work memory");
  if (!asked.ok()) return asked;
  return SolverWork{device, host};
}

// The 32-bit routines that make Q: `apply(type tag, buffer size function, function)`.
template <typename Functions, typename Apply>
auto WithQ(const Functions& f, DType dtype, Apply apply) {
  switch (dtype) {
    case DType::kFloat64:
      return apply(double{}, f.cusolverDnDorgqr_bufferSize, f.cusolverDnDorgqr);
    case DType::kComplex64:
      return apply(cuComplex{}, f.cusolverDnCungqr_bufferSize, f.cusolverDnCungqr);
    case DType::kComplex128:
      return apply(cuDoubleComplex{}, f.cusolverDnZungqr_bufferSize, f.cusolverDnZungqr);
    default:
      return apply(float{}, f.cusolverDnSorgqr_bufferSize, f.cusolverDnSorgqr);
  }
}

cusolverDnHandle_t Handle(void* handle) { return static_cast<cusolverDnHandle_t>(handle); }
cusolverDnParams_t Parameters(void* parameters) {
  return static_cast<cusolverDnParams_t>(parameters);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Solver>> Solver::Open(const Driver& driver, CUstream stream) {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("cuSOLVER library", {"libcusolver.so.12", "libcusolver.so.11"});
  if (!library.ok()) {
    return absl::UnimplementedError(absl::StrCat("linear algebra on a GPU needs cuSOLVER: ",
                                                 std::string(library.status().message())));
  }
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
#define STRIDE_RESOLVE(name)                                                   \
  functions->name = reinterpret_cast<decltype(&::name)>(library->Find(#name)); \
  if (functions->name == nullptr) missing = #name;
  STRIDE_SOLVER_FUNCTIONS(STRIDE_RESOLVE)
#undef STRIDE_RESOLVE
  if (missing != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the cuSOLVER library is too old: it has no ", missing));
  }
  std::unique_ptr<Solver> solver(new Solver(driver, stream, std::move(functions)));
  if (absl::Status s = solver->Start(); !s.ok()) return s;
  return solver;
}

Solver::Solver(const Driver& driver, CUstream stream, std::unique_ptr<Functions> functions)
    : driver_(driver), stream_(stream), functions_(std::move(functions)) {}

Solver::~Solver() {
  if (parameters_ != nullptr) functions_->cusolverDnDestroyParams(Parameters(parameters_));
  if (handle_ != nullptr) functions_->cusolverDnDestroy(Handle(handle_));
}

absl::Status Solver::Start() {
  cusolverDnHandle_t handle = nullptr;
  absl::Status status = SolverStatus(functions_->cusolverDnCreate(&handle), "starting the library");
  if (!status.ok()) return status;
  handle_ = handle;
  status = SolverStatus(functions_->cusolverDnSetStream(handle, stream_), "setting the stream");
  if (!status.ok()) return status;
  cusolverDnParams_t parameters = nullptr;
  status = SolverStatus(functions_->cusolverDnCreateParams(&parameters), "making parameters");
  if (status.ok()) parameters_ = parameters;
  return status;
}

void* Solver::HostWork(uint64_t bytes) {
  if (bytes > host_work_.size()) {
    // Calls before may still read what they were given.
    driver_.cuStreamSynchronize(stream_);
    host_work_.resize(bytes);
  }
  return bytes > 0 ? host_work_.data() : nullptr;
}

absl::StatusOr<SolverWork> Solver::CholeskyWork(DType dtype, bool upper, int64_t n,
                                                CUdeviceptr sample) {
  size_t device = 0, host = 0;
  return Work(functions_->cusolverDnXpotrf_bufferSize(
                  Handle(handle_), Parameters(parameters_), Triangle(upper), n,
                  LibraryTypeOf(dtype), Pointer(sample), n, LibraryTypeOf(dtype), &device, &host),
              device, host);
}

absl::Status Solver::Cholesky(DType dtype, bool upper, int64_t n, CUdeviceptr a, const Call& call) {
  return SolverStatus(
      functions_->cusolverDnXpotrf(
          Handle(handle_), Parameters(parameters_), Triangle(upper), n, LibraryTypeOf(dtype),
          Pointer(a), n, LibraryTypeOf(dtype), Pointer(call.work), call.size.device_bytes,
          HostWork(call.size.host_bytes), call.size.host_bytes, Info(call.info)),
      "factorizing a positive definite matrix");
}

absl::StatusOr<SolverWork> Solver::LuWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample) {
  size_t device = 0, host = 0;
  return Work(functions_->cusolverDnXgetrf_bufferSize(Handle(handle_), Parameters(parameters_), m,
                                                      n, LibraryTypeOf(dtype), Pointer(sample), m,
                                                      LibraryTypeOf(dtype), &device, &host),
              device, host);
}

absl::Status Solver::Lu(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr pivots,
                        const Call& call) {
  return SolverStatus(functions_->cusolverDnXgetrf(
                          Handle(handle_), Parameters(parameters_), m, n, LibraryTypeOf(dtype),
                          Pointer(a), m, Pointer<int64_t>(pivots), LibraryTypeOf(dtype),
                          Pointer(call.work), call.size.device_bytes,
                          HostWork(call.size.host_bytes), call.size.host_bytes, Info(call.info)),
                      "factorizing a matrix");
}

absl::Status Solver::SolveByLu(DType dtype, int64_t n, int64_t num_right, CUdeviceptr lu,
                               CUdeviceptr pivots, CUdeviceptr b, CUdeviceptr info) {
  return SolverStatus(functions_->cusolverDnXgetrs(Handle(handle_), Parameters(parameters_),
                                                   CUBLAS_OP_N, n, num_right, LibraryTypeOf(dtype),
                                                   Pointer(lu), n, Pointer<int64_t>(pivots),
                                                   LibraryTypeOf(dtype), Pointer(b), n, Info(info)),
                      "solving a system");
}

absl::StatusOr<SolverWork> Solver::QrWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample) {
  size_t device = 0, host = 0;
  return Work(functions_->cusolverDnXgeqrf_bufferSize(Handle(handle_), Parameters(parameters_), m,
                                                      n, LibraryTypeOf(dtype), Pointer(sample), m,
                                                      LibraryTypeOf(dtype), Pointer(sample),
                                                      LibraryTypeOf(dtype), &device, &host),
              device, host);
}

absl::Status Solver::Qr(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr tau,
                        const Call& call) {
  return SolverStatus(functions_->cusolverDnXgeqrf(
                          Handle(handle_), Parameters(parameters_), m, n, LibraryTypeOf(dtype),
                          Pointer(a), m, LibraryTypeOf(dtype), Pointer(tau), LibraryTypeOf(dtype),
                          Pointer(call.work), call.size.device_bytes,
                          HostWork(call.size.host_bytes), call.size.host_bytes, Info(call.info)),
                      "making R");
}

absl::StatusOr<SolverWork> Solver::QWork(DType dtype, int64_t m, int64_t columns,
                                         int64_t num_reflectors, CUdeviceptr sample) {
  return WithQ(*functions_, dtype, [&](auto tag, auto size, auto) -> absl::StatusOr<SolverWork> {
    using T = decltype(tag);
    int elements = 0;
    const cusolverStatus_t status =
        size(Handle(handle_), static_cast<int>(m), static_cast<int>(columns),
             static_cast<int>(num_reflectors), Pointer<T>(sample), static_cast<int>(m),
             Pointer<T>(sample), &elements);
    return Work(status, elements * sizeof(T), 0);
  });
}

absl::Status Solver::Q(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors,
                       CUdeviceptr a, CUdeviceptr tau, const Call& call) {
  return WithQ(*functions_, dtype, [&](auto tag, auto, auto make) {
    using T = decltype(tag);
    return SolverStatus(make(Handle(handle_), static_cast<int>(m), static_cast<int>(columns),
                             static_cast<int>(num_reflectors), Pointer<T>(a), static_cast<int>(m),
                             Pointer<T>(tau), Pointer<T>(call.work),
                             static_cast<int>(call.size.device_bytes / sizeof(T)), Info(call.info)),
                        "making Q");
  });
}

absl::StatusOr<SolverWork> Solver::SvdWork(DType dtype, char vectors, int64_t m, int64_t n,
                                           CUdeviceptr sample) {
  size_t device = 0, host = 0;
  return Work(functions_->cusolverDnXgesvd_bufferSize(
                  Handle(handle_), Parameters(parameters_), vectors, vectors, m, n,
                  LibraryTypeOf(dtype), Pointer(sample), m, RealTypeOf(dtype), Pointer(sample),
                  LibraryTypeOf(dtype), Pointer(sample), m, LibraryTypeOf(dtype), Pointer(sample),
                  n, LibraryTypeOf(dtype), &device, &host),
              device, host);
}

absl::Status Solver::Svd(DType dtype, char vectors, int64_t m, int64_t n, CUdeviceptr a,
                         CUdeviceptr s, CUdeviceptr u, CUdeviceptr vt, const Call& call) {
  return SolverStatus(functions_->cusolverDnXgesvd(
                          Handle(handle_), Parameters(parameters_), vectors, vectors, m, n,
                          LibraryTypeOf(dtype), Pointer(a), m, RealTypeOf(dtype), Pointer(s),
                          LibraryTypeOf(dtype), Pointer(u), m, LibraryTypeOf(dtype), Pointer(vt), n,
                          LibraryTypeOf(dtype), Pointer(call.work), call.size.device_bytes,
                          HostWork(call.size.host_bytes), call.size.host_bytes, Info(call.info)),
                      "computing singular values");
}

absl::StatusOr<SolverWork> Solver::EighWork(DType dtype, bool vectors, bool upper, int64_t n,
                                            CUdeviceptr sample) {
  size_t device = 0, host = 0;
  return Work(functions_->cusolverDnXsyevd_bufferSize(
                  Handle(handle_), Parameters(parameters_),
                  vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR, Triangle(upper),
                  n, LibraryTypeOf(dtype), Pointer(sample), n, RealTypeOf(dtype), Pointer(sample),
                  LibraryTypeOf(dtype), &device, &host),
              device, host);
}

absl::Status Solver::Eigh(DType dtype, bool vectors, bool upper, int64_t n, CUdeviceptr a,
                          CUdeviceptr w, const Call& call) {
  return SolverStatus(
      functions_->cusolverDnXsyevd(
          Handle(handle_), Parameters(parameters_),
          vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR, Triangle(upper), n,
          LibraryTypeOf(dtype), Pointer(a), n, RealTypeOf(dtype), Pointer(w), LibraryTypeOf(dtype),
          Pointer(call.work), call.size.device_bytes, HostWork(call.size.host_bytes),
          call.size.host_bytes, Info(call.info)),
      "computing eigenvalues");
}

}  // namespace stride::cuda
