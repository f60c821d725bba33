// Credentials of a connection, and the authorities that it trusts.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "stride/client.h"

namespace stride::internal {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  std::string server_name;  // expected name in the daemon's certificate; empty: the host's
};

// `target` in gRPC's form. INVALID_ARGUMENT when a file cannot be read, or when the token would be
// sent unencrypted: without TLS it is only sent to this machine. gRPC checks this again once it
// knows the real address.
Result<Credentials> MakeCredentials(const ConnectOptions& options, const std::string& target);

}  // namespace stride::internal
