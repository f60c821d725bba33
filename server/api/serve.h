#pragma once

#include <utility>

#include "server/api/call.h"

namespace stride::api {

// The frame of every RPC: authenticate, run `body(call)` (which returns absl::Status), finish.
template <typename Body>
grpc::Status Serve(CallEnvironment& environment, grpc::ServerContext* context, const char* method,
                   Body body) {
  Call call(environment, context, method);
  return call.Finish(call.status().ok() ? body(call) : call.status());
}

// Moves a result to where the reply wants it.
template <typename T>
absl::Status Into(absl::StatusOr<T> result, T* out) {
  if (result.ok()) *out = *std::move(result);
  return result.status();
}

}  // namespace stride::api
