// PutArray and FetchArray by local connections.
#pragma once

#include <memory>

#include "client/cpp/src/local_calls.h"
#include "client/cpp/src/raw_call.h"

namespace stride::internal {

// Uses gRPC if `calls` is null or has no connection available. `calls` must outlive the result.
std::unique_ptr<RawCall> BeginRawCall(LocalCalls* calls,
                                      const std::shared_ptr<grpc::Channel>& channel,
                                      RawCall::Method method, const CallOptions& options,
                                      std::chrono::nanoseconds default_timeout);

}  // namespace stride::internal
