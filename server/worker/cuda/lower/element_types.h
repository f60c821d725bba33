#pragma once

#include <library_types.h>

#include "server/store/dtype.h"

namespace stride::cuda {

// How cuSOLVER and cuFFT name the element types that both take: float32, float64, complex64 and
// complex128, which planners hold operands to.
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
// Of the same precision.
inline cudaDataType RealTypeOf(DType dtype) {
  return IsDoublePrecision(dtype) ? CUDA_R_64F : CUDA_R_32F;
}
inline cudaDataType ComplexTypeOf(DType dtype) {
  return IsDoublePrecision(dtype) ? CUDA_C_64F : CUDA_C_32F;
}

}  // namespace stride::cuda
