// The vocabulary of the rows of routines.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "bench/device/routine.h"

namespace stride::bench {

template <typename T>
T* To(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

inline const float* Floats(const Places& at, int input) {
  return To<const float>(at.inputs[input]);
}
inline const int64_t* Longs(const Places& at, int input) {
  return To<const int64_t>(at.inputs[input]);
}
inline const uint8_t* Bools(const Places& at, int input) {
  return To<const uint8_t>(at.inputs[input]);
}
inline float* FloatResult(const Places& at) { return To<float>(at.result); }
inline int64_t* LongResult(const Places& at) { return To<int64_t>(at.result); }

// `kind`, such as `sort { ... }`, of which the result is handle 100.
inline std::string One(const std::string& kind) {
  return "operations { " + kind + " outputs { handle: 100 } }";
}

}  // namespace stride::bench
