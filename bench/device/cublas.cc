#include "bench/device/cublas.h"

#include <cublas_v2.h>

#include "bench/device/check.h"
#include "server/worker/cuda/dynamic_library.h"

namespace stride::bench {

struct Cublas::Functions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSgemm_v2) sgemm;
  decltype(&cublasDgemm_v2) dgemm;

  Functions() {
    const auto library = Expect(
        cuda::DynamicLibrary::Open("cuBLAS library", {"libcublas.so.13", "libcublas.so.12"}));
    Find(library, "cublasCreate_v2", &create);
    Find(library, "cublasDestroy_v2", &destroy);
    Find(library, "cublasSetStream_v2", &set_stream);
    Find(library, "cublasSgemm_v2", &sgemm);
    Find(library, "cublasDgemm_v2", &dgemm);
  }

 private:
  template <typename Function>
  static void Find(const cuda::DynamicLibrary& library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(library.Find(name));
    if (*function == nullptr) Die(std::string("the cuBLAS library has no ") + name);
  }
};

namespace {

void CheckBlas(cublasStatus_t status, const char* doing) {
  if (status != CUBLAS_STATUS_SUCCESS)
    Die("cuBLAS error " + std::to_string(status) + " while " + doing);
}

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

}  // namespace stride::bench
