#include "bench/device/cusolver.h"

#include <cusolverDn.h>

#include "bench/device/functions_of.h"

namespace stride::bench {
namespace {

void CheckSolver(cusolverStatus_t status, const char* doing) {
  CheckLibrary(status, "cuSOLVER", doing);
}

template <typename T>
T* To(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace

struct Cusolver::Functions {
  decltype(&cusolverDnCreate) create;
  decltype(&cusolverDnDestroy) destroy;
  decltype(&cusolverDnSetStream) set_stream;
  decltype(&cusolverDnSpotrf_bufferSize) spotrf_size;
  decltype(&cusolverDnDpotrf_bufferSize) dpotrf_size;
  decltype(&cusolverDnSpotrf) spotrf;
  decltype(&cusolverDnDpotrf) dpotrf;
  decltype(&cusolverDnDpotrfBatched) dpotrf_batch;
  decltype(&cusolverDnDgetrf_bufferSize) dgetrf_size;
  decltype(&cusolverDnDgetrf) dgetrf;
  decltype(&cusolverDnDgetrs) dgetrs;

  Functions() {
    const auto library = Expect(
        cuda::DynamicLibrary::Open("cuSOLVER library", {"libcusolver.so.12", "libcusolver.so.11"}));
    Find(library, "cusolverDnCreate", &create);
    Find(library, "cusolverDnDestroy", &destroy);
    Find(library, "cusolverDnSetStream", &set_stream);
    Find(library, "cusolverDnSpotrf_bufferSize", &spotrf_size);
    Find(library, "cusolverDnDpotrf_bufferSize", &dpotrf_size);
    Find(library, "cusolverDnSpotrf", &spotrf);
    Find(library, "cusolverDnDpotrf", &dpotrf);
    Find(library, "cusolverDnDpotrfBatched", &dpotrf_batch);
    Find(library, "cusolverDnDgetrf_bufferSize", &dgetrf_size);
    Find(library, "cusolverDnDgetrf", &dgetrf);
    Find(library, "cusolverDnDgetrs", &dgetrs);
  }
};

Cusolver::Cusolver(CUstream stream) : functions_(std::make_unique<Functions>()) {
  cusolverDnHandle_t handle = nullptr;
  CheckSolver(functions_->create(&handle), "starting the library");
  handle_ = handle;
  CheckSolver(functions_->set_stream(handle, stream), "setting the stream");
}

Cusolver::~Cusolver() { functions_->destroy(static_cast<cusolverDnHandle_t>(handle_)); }

int Cusolver::CholeskyElements(DType dtype, int side) {
  const auto handle = static_cast<cusolverDnHandle_t>(handle_);
  int elements = 0;
  CheckSolver(
      dtype == DType::kFloat32
          ? functions_->spotrf_size(handle, CUBLAS_FILL_MODE_UPPER, side, nullptr, side, &elements)
          : functions_->dpotrf_size(handle, CUBLAS_FILL_MODE_UPPER, side, nullptr, side, &elements),
      "asking for the work space");
  return elements;
}

void Cusolver::Cholesky(DType dtype, const Matrix& matrix, int num_elements) {
  const auto handle = static_cast<cusolverDnHandle_t>(handle_);
  auto factor = [&](auto function, auto zero) {
    using T = decltype(zero);
    CheckSolver(function(handle, CUBLAS_FILL_MODE_UPPER, matrix.side, To<T>(matrix.address),
                         matrix.side, To<T>(matrix.work), num_elements, To<int>(matrix.error)),
                "factoring");
  };
  if (dtype == DType::kFloat32)
    factor(functions_->spotrf, 0.0f);
  else
    factor(functions_->dpotrf, 0.0);
}

void Cusolver::CholeskyBatch(const Matrix& matrices, int count) {
  CheckSolver(functions_->dpotrf_batch(
                  static_cast<cusolverDnHandle_t>(handle_), CUBLAS_FILL_MODE_UPPER, matrices.side,
                  To<double*>(matrices.address), matrices.side, To<int>(matrices.error), count),
              "factoring a batch");
}

int Cusolver::SolveElements(int side) {
  int elements = 0;
  CheckSolver(functions_->dgetrf_size(static_cast<cusolverDnHandle_t>(handle_), side, side, nullptr,
                                      side, &elements),
              "asking for the work space");
  return elements;
}

void Cusolver::Solve(const Matrix& matrix, CUdeviceptr columns, int count) {
  const auto handle = static_cast<cusolverDnHandle_t>(handle_);
  CheckSolver(
      functions_->dgetrf(handle, matrix.side, matrix.side, To<double>(matrix.address), matrix.side,
                         To<double>(matrix.work), To<int>(matrix.pivots), To<int>(matrix.error)),
      "factoring");
  CheckSolver(functions_->dgetrs(handle, CUBLAS_OP_N, matrix.side, count,
                                 To<double>(matrix.address), matrix.side, To<int>(matrix.pivots),
                                 To<double>(columns), matrix.side, To<int>(matrix.error)),
              "solving");
}

}  // namespace stride::bench
