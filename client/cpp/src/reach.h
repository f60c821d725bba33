// Explains to people why a daemon cannot be reached: one sentence for each cause.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <optional>
#include <string>

#include "stride/client.h"

namespace stride::internal {

// The error that only an administrator can resolve: this user may not open the Unix socket. nullopt
// if the socket can be opened, or fails for another reason.
std::optional<Error> Refused(const std::string& target);

// Diagnoses why a channel to `target` did not become ready in time. Blocks for seconds at most.
Error WhyUnreachable(const ConnectOptions& options, const std::string& target,
                     const std::shared_ptr<grpc::Channel>& channel);

}  // namespace stride::internal
