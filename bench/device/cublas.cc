#include "bench/device/cublas.h"

#include <cublas_v2.h>

#include <cstdint>

#include "bench/device/functions_of.h"

namespace stride::bench {

struct Cublas::Functions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSgemm_v2) sgemm;
  decltype(&cublasDgemm_v2) dgemm;
  decltype(&cublasSgemv_v2) sgemv;
  decltype(&cublasSetPointerMode_v2) set_pointer_mode;
  decltype(&cublasSdot_v2) sdot;
  decltype(&cublasSgeam) sgeam;
  decltype(&cublasDgemmStridedBatched) dgemm_batch;
  // Not by decltype: the header overloads the name.
  cublasStatus_t (*gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                            int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                            cublasGemmAlgo_t);
  decltype(&cublasDgetrfBatched) dgetrf_batch;
  decltype(&cublasDgetrsBatched) dgetrs_batch;

  Functions() {
    const auto library = Expect(
        cuda::DynamicLibrary::Open("cuBLAS library", {"libcublas.so.13", "libcublas.so.12"}));
    Find(library, "cublasCreate_v2", &create);
    Find(library, "cublasDestroy_v2", &destroy);
    Find(library, "cublasSetStream_v2", &set_stream);
    Find(library, "cublasSgemm_v2", &sgemm);
    Find(library, "cublasDgemm_v2", &dgemm);
    Find(library, "cublasSgemv_v2", &sgemv);
    Find(library, "cublasSetPointerMode_v2", &set_pointer_mode);
    Find(library, "cublasSdot_v2", &sdot);
    Find(library, "cublasSgeam", &sgeam);
    Find(library, "cublasDgemmStridedBatched", &dgemm_batch);
    Find(library, "cublasGemmEx", &gemm_ex);
    Find(library, "cublasDgetrfBatched", &dgetrf_batch);
    Find(library, "cublasDgetrsBatched", &dgetrs_batch);
  }
};

namespace {

void CheckBlas(cublasStatus_t status, const char* doing) { CheckLibrary(status, "cuBLAS", doing); }

}  // namespace

Cublas::Cublas(CUstream stream) : functions_(std::make_unique<Functions>()) {
  cublasHandle_t handle = nullptr;
  CheckBlas(functions_->create(&handle), "starting the library");
  handle_ = handle;
  CheckBlas(functions_->set_stream(handle, stream), "setting the stream");
}

Cublas::~Cublas() { functions_->destroy(static_cast<cublasHandle_t>(handle_)); }

void Cublas::Multiply(DType dtype, const Product& product) {
  const auto& [m, n, k, left, right, output, right_transposed] = product;
  // In the library's column-major eyes each matrix is its transpose: C^T = B^T A^T.
  const cublasOperation_t operation = right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int leading = right_transposed ? k : n;
  auto multiply = [&](auto gemm, auto one) {
    using T = decltype(one);
    const T zero = 0;
    CheckBlas(gemm(static_cast<cublasHandle_t>(handle_), operation, CUBLAS_OP_N, n, m, k, &one,
                   reinterpret_cast<const T*>(right), leading, reinterpret_cast<const T*>(left), k,
                   &zero, reinterpret_cast<T*>(output), n),
              "multiplying matrices");
  };
  if (dtype == DType::kFloat32)
    multiply(functions_->sgemm, 1.0f);
  else
    multiply(functions_->dgemm, 1.0);
}

void Cublas::VectorByMatrix(int rows, int columns, CUdeviceptr vector, CUdeviceptr matrix,
                            CUdeviceptr output) {
  const float one = 1, zero = 0;
  CheckBlas(functions_->sgemv(static_cast<cublasHandle_t>(handle_), CUBLAS_OP_N, columns, rows,
                              &one, reinterpret_cast<const float*>(matrix), columns,
                              reinterpret_cast<const float*>(vector), 1, &zero,
                              reinterpret_cast<float*>(output), 1),
            "multiplying a vector by a matrix");
}

void Cublas::Dot(int count, CUdeviceptr left, CUdeviceptr right, CUdeviceptr output) {
  const auto handle = static_cast<cublasHandle_t>(handle_);
  CheckBlas(functions_->set_pointer_mode(handle, CUBLAS_POINTER_MODE_DEVICE), "setting the mode");
  CheckBlas(
      functions_->sdot(handle, count, reinterpret_cast<const float*>(left), 1,
                       reinterpret_cast<const float*>(right), 1, reinterpret_cast<float*>(output)),
      "multiplying vectors");
  CheckBlas(functions_->set_pointer_mode(handle, CUBLAS_POINTER_MODE_HOST), "setting the mode");
}

void Cublas::Transpose(int side, CUdeviceptr matrix, CUdeviceptr added, CUdeviceptr output) {
  const float one = 1, other = added == 0 ? 0 : 1;
  const auto* const addend = reinterpret_cast<const float*>(added == 0 ? output : added);
  CheckBlas(functions_->sgeam(static_cast<cublasHandle_t>(handle_), CUBLAS_OP_T, CUBLAS_OP_N, side,
                              side, &one, reinterpret_cast<const float*>(matrix), side, &other,
                              addend, side, reinterpret_cast<float*>(output), side),
            "transposing");
}

void Cublas::MultiplyBatch(int side, int count, CUdeviceptr left, CUdeviceptr right,
                           CUdeviceptr output) {
  const double one = 1, zero = 0;
  const long long stride = static_cast<long long>(side) * side;
  // Each matrix is its transpose to the library: C^T = B^T A^T.
  CheckBlas(
      functions_->dgemm_batch(static_cast<cublasHandle_t>(handle_), CUBLAS_OP_N, CUBLAS_OP_N, side,
                              side, side, &one, reinterpret_cast<const double*>(right), side,
                              stride, reinterpret_cast<const double*>(left), side, stride, &zero,
                              reinterpret_cast<double*>(output), side, stride, count),
      "multiplying a batch");
}

void Cublas::MultiplyBytes(int side, CUdeviceptr left, CUdeviceptr right, CUdeviceptr output) {
  const int32_t one = 1, zero = 0;
  // C^T = B^T A^T; a row-major matrix is its transpose to the library.
  CheckBlas(functions_->gemm_ex(static_cast<cublasHandle_t>(handle_), CUBLAS_OP_T, CUBLAS_OP_N,
                                side, side, side, &one, reinterpret_cast<const void*>(right),
                                CUDA_R_8I, side, reinterpret_cast<const void*>(left), CUDA_R_8I,
                                side, &zero, reinterpret_cast<void*>(output), CUDA_R_32I, side,
                                CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT),
            "multiplying bytes");
}

void Cublas::SolveBatch(const Systems& systems) {
  const auto handle = static_cast<cublasHandle_t>(handle_);
  auto* const matrices = reinterpret_cast<double**>(systems.matrices);
  auto* const pivots = reinterpret_cast<int*>(systems.pivots);
  CheckBlas(functions_->dgetrf_batch(handle, systems.side, matrices, systems.side, pivots,
                                     reinterpret_cast<int*>(systems.errors), systems.count),
            "factoring a batch");
  int error = 0;
  CheckBlas(functions_->dgetrs_batch(handle, CUBLAS_OP_N, systems.side, 1, matrices, systems.side,
                                     pivots, reinterpret_cast<double**>(systems.vectors),
                                     systems.side, &error, systems.count),
            "solving a batch");
}

}  // namespace stride::bench
