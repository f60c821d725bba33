// The daemon passes descriptors (regions, local connections) in exchange for tickets, on a separate
// Unix socket.
#pragma once

#include <string>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/descriptor.h"
#include "stride/result.h"

namespace stride::internal {

// `socket_path` and `ticket` come from the daemon's answer to the call that created the ticket.
// UNAVAILABLE when the socket cannot be reached or the ticket has expired. Blocks for a round trip,
// at most some seconds.
Result<Descriptor> FetchDescriptor(const Channels& channels, const std::string& socket_path,
                                   const std::string& ticket);

// The same, with the connection, for resources that last as long as it is open.
struct Ticketed {
  Descriptor descriptor, connection;
};
Result<Ticketed> FetchWithConnection(const Channels& channels, const std::string& socket_path,
                                     const std::string& ticket);

}  // namespace stride::internal
