#pragma once

#include <library_types.h>

#include "server/store/dtype.h"

namespace stride::cuda {

// Element types in cuSOLVER's and cuFFT's terms: float32, float64, complex64 and complex128, to
// which planners restrict operands.
inline cudaDataType LibraryTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kComplex64:
      return CUDA_C_32F;
    case DType::kComplex128:
      return CUDA_C_64F;
    default:
      return CUDA_R_32F;
  }
}

inline bool IsDoublePrecision(DType dtype) {
  return dtype == DType::kFloat64 || dtype == DType::kComplex128;
}
// Types of the same precision as `dtype`.
inline cudaDataType RealTypeOf(DType dtype) {
  return IsDoublePrecision(dtype) ? CUDA_R_64F : CUDA_R_32F;
}
inline cudaDataType ComplexTypeOf(DType dtype) {
  return IsDoublePrecision(dtype) ? CUDA_C_64F : CUDA_C_32F;
}

}  // namespace stride::cuda
