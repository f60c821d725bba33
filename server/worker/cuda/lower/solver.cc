#include "server/worker/cuda/lower/solver.h"

#include <cusolverDn.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/dynamic_library.h"
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

// Null where the library that is installed lacks them.
#if defined(CUSOLVER_VERSION) && CUSOLVER_VERSION >= 11702
#define STRIDE_HAS_GEEV 1
#define STRIDE_OPTIONAL_SOLVER_FUNCTIONS(X) X(cusolverDnXgeev_bufferSize) X(cusolverDnXgeev)
#else
#define STRIDE_HAS_GEEV 0
#define STRIDE_OPTIONAL_SOLVER_FUNCTIONS(X)
#endif

struct Solver::Functions {
#define STRIDE_DECLARE(name) decltype(&::name) name = nullptr;
  STRIDE_SOLVER_FUNCTIONS(STRIDE_DECLARE)
  STRIDE_OPTIONAL_SOLVER_FUNCTIONS(STRIDE_DECLARE)
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

constexpr std::string_view kAsking = "asking for work memory";

cusolverEigMode_t EigMode(bool vectors) {
  return vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

// Where one call works.
struct WorkPlaces {
  void* device = nullptr;
  size_t device_bytes = 0;
  void* host = nullptr;
  size_t host_bytes = 0;
  int* info = nullptr;
};

// The 32-bit routines that compute Q: `apply(type tag, buffer size function, function)`.
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

SolverRoutine CholeskyRoutine(DType dtype, bool upper, int64_t n) {
  return {"cusolverDnXpotrf", dtype, n, n, 0, 'N', upper};
}
SolverRoutine LuRoutine(DType dtype, int64_t m, int64_t n) {
  return {"cusolverDnXgetrf", dtype, m, n};
}
SolverRoutine QrRoutine(DType dtype, int64_t m, int64_t n) {
  return {"cusolverDnXgeqrf", dtype, m, n};
}
SolverRoutine QRoutine(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors) {
  return {"cuSOLVER's orgqr", dtype, m, columns, num_reflectors};
}
SolverRoutine SvdRoutine(DType dtype, char vectors, int64_t m, int64_t n) {
  return {"cusolverDnXgesvd", dtype, m, n, 0, vectors};
}
SolverRoutine EighRoutine(DType dtype, bool vectors, bool upper, int64_t n) {
  return {"cusolverDnXsyevd", dtype, n, n, 0, vectors ? 'V' : 'N', upper};
}
#if STRIDE_HAS_GEEV
SolverRoutine EigRoutine(DType dtype, bool vectors, int64_t n) {
  return {"cusolverDnXgeev", dtype, n, n, 0, vectors ? 'V' : 'N'};
}
#endif

absl::Status QTooLarge() {
  return absl::UnimplementedError(
      "cuSOLVER makes Q with 32-bit counts, too few for a matrix as large");
}

absl::Status NoGeev(std::string_view library) {
  return absl::UnimplementedError(
      absl::StrCat("eigenvalues of general matrices (Linalg.FUNCTION_EIG) on a GPU need cuSOLVER's "
                   "cusolverDnXgeev, which ",
                   std::string(library), " lacks; CUDA 12.8 has it, and the CPU device does"));
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
  return Create(driver, stream, [&](const char* name) { return library->Find(name); });
}

absl::StatusOr<std::unique_ptr<Solver>> Solver::Create(const Driver& driver, CUstream stream,
                                                       absl::FunctionRef<void*(const char*)> find) {
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
#define STRIDE_RESOLVE(name) functions->name = reinterpret_cast<decltype(&::name)>(find(#name));
  STRIDE_SOLVER_FUNCTIONS(STRIDE_RESOLVE)
  STRIDE_OPTIONAL_SOLVER_FUNCTIONS(STRIDE_RESOLVE)
#undef STRIDE_RESOLVE
#define STRIDE_CHECK(name) \
  if (functions->name == nullptr) missing = #name;
  STRIDE_SOLVER_FUNCTIONS(STRIDE_CHECK)
#undef STRIDE_CHECK
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
    // Earlier calls may still read their arguments.
    driver_.cuStreamSynchronize(stream_);
    host_work_.resize(bytes);
  }
  return bytes > 0 ? host_work_.data() : nullptr;
}

template <typename Run>
absl::Status Solver::RunIn(const Call& call, const SolverRoutine& routine, std::string_view doing,
                           Run run) {
  absl::Status given = call.need.CheckGiven(routine, call.work, call.work_bytes);
  if (!given.ok()) return given;
  WorkPlaces places;
  places.device = Pointer(call.work);
  places.device_bytes = call.need.device_bytes();
  places.host_bytes = call.need.host_bytes();
  places.host = HostWork(places.host_bytes);
  places.info = Info(call.info);
  return SolverStatus(run(places), doing);
}

absl::StatusOr<SolverWork> Solver::CholeskyWork(DType dtype, bool upper, int64_t n,
                                                CUdeviceptr sample) {
  return SolverWork::AskFor(CholeskyRoutine(dtype, upper, n), [&](size_t* device, size_t* host) {
    return SolverStatus(
        functions_->cusolverDnXpotrf_bufferSize(
            Handle(handle_), Parameters(parameters_), Triangle(upper), n, LibraryTypeOf(dtype),
            Pointer(sample), n, LibraryTypeOf(dtype), device, host),
        kAsking);
  });
}

absl::Status Solver::Cholesky(DType dtype, bool upper, int64_t n, CUdeviceptr a, const Call& call) {
  return RunIn(call, CholeskyRoutine(dtype, upper, n), "factorizing a positive definite matrix",
               [&](const WorkPlaces& work) {
                 return functions_->cusolverDnXpotrf(
                     Handle(handle_), Parameters(parameters_), Triangle(upper), n,
                     LibraryTypeOf(dtype), Pointer(a), n, LibraryTypeOf(dtype), work.device,
                     work.device_bytes, work.host, work.host_bytes, work.info);
               });
}

absl::StatusOr<SolverWork> Solver::LuWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample) {
  return SolverWork::AskFor(LuRoutine(dtype, m, n), [&](size_t* device, size_t* host) {
    return SolverStatus(functions_->cusolverDnXgetrf_bufferSize(
                            Handle(handle_), Parameters(parameters_), m, n, LibraryTypeOf(dtype),
                            Pointer(sample), m, LibraryTypeOf(dtype), device, host),
                        kAsking);
  });
}

absl::Status Solver::Lu(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr pivots,
                        const Call& call) {
  return RunIn(call, LuRoutine(dtype, m, n), "factorizing a matrix", [&](const WorkPlaces& work) {
    return functions_->cusolverDnXgetrf(Handle(handle_), Parameters(parameters_), m, n,
                                        LibraryTypeOf(dtype), Pointer(a), m,
                                        Pointer<int64_t>(pivots), LibraryTypeOf(dtype), work.device,
                                        work.device_bytes, work.host, work.host_bytes, work.info);
  });
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
  return SolverWork::AskFor(QrRoutine(dtype, m, n), [&](size_t* device, size_t* host) {
    return SolverStatus(
        functions_->cusolverDnXgeqrf_bufferSize(
            Handle(handle_), Parameters(parameters_), m, n, LibraryTypeOf(dtype), Pointer(sample),
            m, LibraryTypeOf(dtype), Pointer(sample), LibraryTypeOf(dtype), device, host),
        kAsking);
  });
}

absl::Status Solver::Qr(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr tau,
                        const Call& call) {
  return RunIn(call, QrRoutine(dtype, m, n), "making R", [&](const WorkPlaces& work) {
    return functions_->cusolverDnXgeqrf(Handle(handle_), Parameters(parameters_), m, n,
                                        LibraryTypeOf(dtype), Pointer(a), m, LibraryTypeOf(dtype),
                                        Pointer(tau), LibraryTypeOf(dtype), work.device,
                                        work.device_bytes, work.host, work.host_bytes, work.info);
  });
}

absl::StatusOr<SolverWork> Solver::QWork(DType dtype, int64_t m, int64_t columns,
                                         int64_t num_reflectors, CUdeviceptr sample) {
  return WithQ(*functions_, dtype, [&](auto tag, auto size, auto) -> absl::StatusOr<SolverWork> {
    using T = decltype(tag);
    return SolverWork::AskFor(QRoutine(dtype, m, columns, num_reflectors),
                              [&](size_t* device, size_t* host) -> absl::Status {
                                int elements = -1;
                                const cusolverStatus_t asked = size(
                                    Handle(handle_), static_cast<int>(m), static_cast<int>(columns),
                                    static_cast<int>(num_reflectors), Pointer<T>(sample),
                                    static_cast<int>(m), Pointer<T>(sample), &elements);
                                if (absl::Status s = SolverStatus(asked, kAsking); !s.ok())
                                  return s;
                                if (elements < 0) return QTooLarge();
                                *device = static_cast<size_t>(elements) * sizeof(T);
                                *host = 0;
                                return absl::OkStatus();
                              });
  });
}

absl::Status Solver::Q(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors,
                       CUdeviceptr a, CUdeviceptr tau, const Call& call) {
  return WithQ(*functions_, dtype, [&](auto tag, auto, auto make) {
    using T = decltype(tag);
    return RunIn(call, QRoutine(dtype, m, columns, num_reflectors), "making Q",
                 [&](const WorkPlaces& work) {
                   return make(Handle(handle_), static_cast<int>(m), static_cast<int>(columns),
                               static_cast<int>(num_reflectors), Pointer<T>(a), static_cast<int>(m),
                               Pointer<T>(tau), static_cast<T*>(work.device),
                               static_cast<int>(work.device_bytes / sizeof(T)), work.info);
                 });
  });
}

absl::StatusOr<SolverWork> Solver::SvdWork(DType dtype, char vectors, int64_t m, int64_t n,
                                           CUdeviceptr sample) {
  return SolverWork::AskFor(SvdRoutine(dtype, vectors, m, n), [&](size_t* device, size_t* host) {
    return SolverStatus(
        functions_->cusolverDnXgesvd_bufferSize(
            Handle(handle_), Parameters(parameters_), vectors, vectors, m, n, LibraryTypeOf(dtype),
            Pointer(sample), m, RealTypeOf(dtype), Pointer(sample), LibraryTypeOf(dtype),
            Pointer(sample), m, LibraryTypeOf(dtype), Pointer(sample), n, LibraryTypeOf(dtype),
            device, host),
        kAsking);
  });
}

absl::Status Solver::Svd(DType dtype, char vectors, int64_t m, int64_t n, CUdeviceptr a,
                         CUdeviceptr s, CUdeviceptr u, CUdeviceptr vt, const Call& call) {
  return RunIn(call, SvdRoutine(dtype, vectors, m, n), "computing singular values",
               [&](const WorkPlaces& work) {
                 return functions_->cusolverDnXgesvd(
                     Handle(handle_), Parameters(parameters_), vectors, vectors, m, n,
                     LibraryTypeOf(dtype), Pointer(a), m, RealTypeOf(dtype), Pointer(s),
                     LibraryTypeOf(dtype), Pointer(u), m, LibraryTypeOf(dtype), Pointer(vt), n,
                     LibraryTypeOf(dtype), work.device, work.device_bytes, work.host,
                     work.host_bytes, work.info);
               });
}

absl::StatusOr<SolverWork> Solver::EighWork(DType dtype, bool vectors, bool upper, int64_t n,
                                            CUdeviceptr sample) {
  return SolverWork::AskFor(EighRoutine(dtype, vectors, upper, n), [&](size_t* device,
                                                                       size_t* host) {
    return SolverStatus(functions_->cusolverDnXsyevd_bufferSize(
                            Handle(handle_), Parameters(parameters_), EigMode(vectors),
                            Triangle(upper), n, LibraryTypeOf(dtype), Pointer(sample), n,
                            RealTypeOf(dtype), Pointer(sample), LibraryTypeOf(dtype), device, host),
                        kAsking);
  });
}

absl::Status Solver::Eigh(DType dtype, bool vectors, bool upper, int64_t n, CUdeviceptr a,
                          CUdeviceptr w, const Call& call) {
  return RunIn(call, EighRoutine(dtype, vectors, upper, n), "computing eigenvalues",
               [&](const WorkPlaces& work) {
                 return functions_->cusolverDnXsyevd(
                     Handle(handle_), Parameters(parameters_), EigMode(vectors), Triangle(upper), n,
                     LibraryTypeOf(dtype), Pointer(a), n, RealTypeOf(dtype), Pointer(w),
                     LibraryTypeOf(dtype), work.device, work.device_bytes, work.host,
                     work.host_bytes, work.info);
               });
}

#if STRIDE_HAS_GEEV
absl::StatusOr<SolverWork> Solver::EigWork(DType dtype, bool vectors, int64_t n,
                                           CUdeviceptr sample) {
  if (functions_->cusolverDnXgeev_bufferSize == nullptr || functions_->cusolverDnXgeev == nullptr)
    return NoGeev("the library that is installed");
  const cudaDataType type = LibraryTypeOf(dtype);
  return SolverWork::AskFor(EigRoutine(dtype, vectors, n), [&](size_t* device, size_t* host) {
    return SolverStatus(
        functions_->cusolverDnXgeev_bufferSize(
            Handle(handle_), Parameters(parameters_), EigMode(false), EigMode(vectors), n, type,
            Pointer(sample), n, type, Pointer(sample), type, nullptr, n, type,
            vectors ? Pointer(sample) : nullptr, n, type, device, host),
        kAsking);
  });
}

absl::Status Solver::Eig(DType dtype, bool vectors, int64_t n, CUdeviceptr a, CUdeviceptr w,
                         CUdeviceptr right, const Call& call) {
  const cudaDataType type = LibraryTypeOf(dtype);
  return RunIn(call, EigRoutine(dtype, vectors, n), "computing eigenvalues of a general matrix",
               [&](const WorkPlaces& work) {
                 return functions_->cusolverDnXgeev(
                     Handle(handle_), Parameters(parameters_), EigMode(false), EigMode(vectors), n,
                     type, Pointer(a), n, type, Pointer(w), type, nullptr, n, type, Pointer(right),
                     n, type, work.device, work.device_bytes, work.host, work.host_bytes,
                     work.info);
               });
}
#else
absl::StatusOr<SolverWork> Solver::EigWork(DType, bool, int64_t, CUdeviceptr) {
  return NoGeev("the library that this worker was built for");
}
absl::Status Solver::Eig(DType, bool, int64_t, CUdeviceptr, CUdeviceptr, CUdeviceptr, const Call&) {
  return NoGeev("the library that this worker was built for");
}
#endif

}  // namespace stride::cuda
