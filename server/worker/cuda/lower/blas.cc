#include "server/worker/cuda/lower/blas.h"

#include <cublas_api.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/dynamic_library.h"

namespace stride::cuda {

template <typename T>
using Gemv = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, int64_t, int64_t, const T*,
                                const T*, int64_t, const T*, int64_t, const T*, T*, int64_t);

struct Blas::Functions {
  cublasStatus_t (*create)(cublasHandle_t*) = nullptr;
  cublasStatus_t (*destroy)(cublasHandle_t) = nullptr;
  cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t) = nullptr;
  cublasStatus_t (*set_math_mode)(cublasHandle_t, cublasMath_t) = nullptr;
  // The 64-bit interface (cuBLAS 12 and later), for extents and strides beyond 2^31.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t, int64_t,
                         int64_t, const void*, const void*, cudaDataType, int64_t, const void*,
                         cudaDataType, int64_t, const void*, void*, cudaDataType, int64_t,
                         cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
  // Products with a vector: the general product reads the matrix more slowly.
  Gemv<float> sgemv = nullptr;
  Gemv<double> dgemv = nullptr;
  Gemv<cuComplex> cgemv = nullptr;
  Gemv<cuDoubleComplex> zgemv = nullptr;
  cublasStatus_t (*gemm_batched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t,
                                 int64_t, int64_t, const void*, const void*, cudaDataType, int64_t,
                                 long long, const void*, cudaDataType, int64_t, long long,
                                 const void*, void*, cudaDataType, int64_t, long long, int64_t,
                                 cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
};

namespace {

template <typename Function>
bool Resolve(const DynamicLibrary& library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(library.Find(name));
  return *function != nullptr;
}

absl::Status BlasStatus(cublasStatus_t status, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  absl::StatusCode code = absl::StatusCode::kInternal;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) code = absl::StatusCode::kResourceExhausted;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) {
    code = absl::StatusCode::kUnimplemented;
  }
  return absl::Status(
      code, absl::StrCat("cuBLAS error ", static_cast<int>(status), " while ", std::string(doing)));
}

struct Types {
  cudaDataType data;
  cublasComputeType_t compute;
};

Types TypesOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::kBFloat16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case DType::kFloat64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::kComplex64:
      return {CUDA_C_32F, CUBLAS_COMPUTE_32F};
    case DType::kComplex128:
      return {CUDA_C_64F, CUBLAS_COMPUTE_64F};
    default:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

// 1 and 0 in every scale type: a real scale is the first number.
struct Scale {
  alignas(16) float single[2];
  alignas(16) double twice[2];
  const void* For(cublasComputeType_t compute) const {
    return compute == CUBLAS_COMPUTE_64F ? static_cast<const void*>(twice) : single;
  }
};
constexpr Scale kOne = {{1, 0}, {1, 0}};
constexpr Scale kZero = {{0, 0}, {0, 0}};

cublasOperation_t Operation(const BlasMatrix& matrix) {
  return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::Open() {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("cuBLAS library", {"libcublas.so.13", "libcublas.so.12"});
  if (!library.ok()) return library.status();
  auto functions = std::make_unique<Functions>();
  if (!Resolve(*library, "cublasCreate_v2", &functions->create) ||
      !Resolve(*library, "cublasDestroy_v2", &functions->destroy) ||
      !Resolve(*library, "cublasSetStream_v2", &functions->set_stream) ||
      !Resolve(*library, "cublasSetMathMode", &functions->set_math_mode) ||
      !Resolve(*library, "cublasGemmEx_64", &functions->gemm) ||
      !Resolve(*library, "cublasSgemv_v2_64", &functions->sgemv) ||
      !Resolve(*library, "cublasDgemv_v2_64", &functions->dgemv) ||
      !Resolve(*library, "cublasCgemv_v2_64", &functions->cgemv) ||
      !Resolve(*library, "cublasZgemv_v2_64", &functions->zgemv) ||
      !Resolve(*library, "cublasGemmStridedBatchedEx_64", &functions->gemm_batched)) {
    return absl::UnavailableError("the cuBLAS library is too old: version 12 or later is needed");
  }
  return std::unique_ptr<Blas>(new Blas(std::move(functions)));
}

Blas::Blas(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

Blas::~Blas() {
  if (handle_ != nullptr) functions_->destroy(static_cast<cublasHandle_t>(handle_));
}

bool Blas::Supports(DType dtype) { return IsFloat(dtype) || IsComplex(dtype); }

absl::Status Blas::UseStream(CUstream stream) {
  if (stream == stream_) return absl::OkStatus();
  stream_ = stream;
  return BlasStatus(functions_->set_stream(static_cast<cublasHandle_t>(handle_), stream),
                    "setting the stream");
}

absl::Status Blas::Prepare(CUstream stream) {
  if (handle_ != nullptr) return UseStream(stream);
  cublasHandle_t handle = nullptr;
  absl::Status status = BlasStatus(functions_->create(&handle), "starting the library");
  if (!status.ok()) return status;
  handle_ = handle;
  // On a fresh handle these calls fail only by a mistake in this code, which every product would
  // then report.
  if (status = UseStream(stream); !status.ok()) return status;
  // The default mode computes float32 in float32; the flag prevents sums of split 16-bit products
  // in 16 bits.
  const auto mode = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  return BlasStatus(functions_->set_math_mode(handle, mode), "setting the math mode");
}

namespace {

bool HasGemv(DType dtype) { return dtype != DType::kFloat16 && dtype != DType::kBFloat16; }

// Stride of a vector's elements in a matrix of one row or column.
int64_t VectorStep(const BlasMatrix& matrix, bool is_row) {
  // A row that is not transposed, and a column that is, are contiguous.
  return is_row != matrix.transposed ? 1 : matrix.leading;
}

template <typename T>
cublasStatus_t RunGemv(Gemv<T> gemv, cublasHandle_t handle, cublasOperation_t operation,
                       int64_t rows, int64_t columns, const void* one, const BlasMatrix& matrix,
                       const BlasMatrix& vector, int64_t step, const void* zero,
                       const BlasMatrix& output, int64_t output_step) {
  return gemv(handle, operation, rows, columns, static_cast<const T*>(one),
              static_cast<const T*>(Pointer(matrix.address)), matrix.leading,
              static_cast<const T*>(Pointer(vector.address)), step, static_cast<const T*>(zero),
              static_cast<T*>(Pointer(output.address)), output_step);
}

}  // namespace

// Read as column-major, a row-major matrix of r rows and c columns is c x r; transposed ones are r
// x c.
int Blas::MultiplyVector(DType dtype, int64_t m, int64_t n, int64_t k, const BlasMatrix& left,
                         const BlasMatrix& right, const BlasMatrix& output) {
  const bool by_column = n == 1;  // else a row by a matrix
  const BlasMatrix& matrix = by_column ? left : right;
  const BlasMatrix& vector = by_column ? right : left;
  const int64_t rows = by_column ? m : k, columns = by_column ? k : n;
  // A x needs the matrix unchanged, x B its transpose.
  const bool as_seen = matrix.transposed == by_column;
  const cublasOperation_t operation = as_seen ? CUBLAS_OP_N : CUBLAS_OP_T;
  const int64_t seen_rows = matrix.transposed ? rows : columns;
  const int64_t seen_columns = matrix.transposed ? columns : rows;
  const int64_t step = VectorStep(vector, /*is_row=*/!by_column);
  const int64_t output_step = by_column ? output.leading : 1;
  auto run = [&](auto gemv, const void* one, const void* zero) {
    return RunGemv(gemv, static_cast<cublasHandle_t>(handle_), operation, seen_rows, seen_columns,
                   one, matrix, vector, step, zero, output, output_step);
  };
  switch (dtype) {
    case DType::kFloat64:
      return run(functions_->dgemv, kOne.twice, kZero.twice);
    case DType::kComplex64:
      return run(functions_->cgemv, kOne.single, kZero.single);
    case DType::kComplex128:
      return run(functions_->zgemv, kOne.twice, kZero.twice);
    default:
      return run(functions_->sgemv, kOne.single, kZero.single);
  }
}

absl::Status Blas::Multiply(CUstream stream, DType dtype, int64_t m, int64_t n, int64_t k,
                            const BlasMatrix& left, const BlasMatrix& right,
                            const BlasMatrix& output, int64_t batch_count) {
  if (!Supports(dtype)) {
    return absl::UnimplementedError(
        absl::StrCat("matmul of ", std::string(Name(dtype)), " by cuBLAS"));
  }
  if (absl::Status status = Prepare(stream); !status.ok()) return status;
  const auto [data, compute] = TypesOf(dtype);
  const auto handle = static_cast<cublasHandle_t>(handle_);
  // Read as column-major, a row-major matrix is its transpose: C^T = B^T A^T.
  if (batch_count == 1 && (m == 1 || n == 1) && HasGemv(dtype)) {
    return BlasStatus(
        static_cast<cublasStatus_t>(MultiplyVector(dtype, m, n, k, left, right, output)),
        "multiplying a matrix by a vector");
  }
  if (batch_count == 1) {
    return BlasStatus(
        functions_->gemm(handle, Operation(right), Operation(left), n, m, k, kOne.For(compute),
                         Pointer(right.address), data, right.leading, Pointer(left.address), data,
                         left.leading, kZero.For(compute), Pointer(output.address), data,
                         output.leading, compute, CUBLAS_GEMM_DEFAULT),
        "multiplying matrices");
  }
  return BlasStatus(
      functions_->gemm_batched(
          handle, Operation(right), Operation(left), n, m, k, kOne.For(compute),
          Pointer(right.address), data, right.leading, right.batch_stride, Pointer(left.address),
          data, left.leading, left.batch_stride, kZero.For(compute), Pointer(output.address), data,
          output.leading, output.batch_stride, batch_count, compute, CUBLAS_GEMM_DEFAULT),
      "multiplying matrices");
}

}  // namespace stride::cuda
