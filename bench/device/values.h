// Input values of the operations.
#pragma once

#include <cstdint>
#include <type_traits>

#include "server/store/dtype.h"

namespace stride::bench {

template <typename T>
constexpr DType TypeOf() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  return DType::kInt32;
}

// Values that no order of addition rounds much, and every extreme of which is there more than once.
template <typename T>
T ValueAt(int64_t i) {
  return static_cast<T>(static_cast<int32_t>(static_cast<uint32_t>(i) * 2654435761u >> 20)) / 16;
}

}  // namespace stride::bench
