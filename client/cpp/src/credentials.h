// What a connection shows of itself, and whom it believes.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "stride/client.h"

namespace stride::internal {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  std::string server_name;  // the name that the daemon's certificate must have; empty: the host's
};

// `target` as gRPC takes it. INVALID_ARGUMENT when a file cannot be read, or when the token would
// travel in the clear: without TLS it goes to this machine alone, which gRPC checks again once it
// knows the real address.
Result<Credentials> MakeCredentials(const ConnectOptions& options, const std::string& target);

}  // namespace stride::internal
