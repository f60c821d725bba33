#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stride::api {

// Moves a result into the reply.
template <typename T>
absl::Status Into(absl::StatusOr<T> result, T* out) {
  if (result.ok()) *out = *std::move(result);
  return result.status();
}

}  // namespace stride::api
