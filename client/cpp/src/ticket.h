// The daemon hands out descriptors (regions, local connections) for tickets, on a Unix socket of
// its own.
#pragma once

#include <string>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/descriptor.h"
#include "stride/result.h"

namespace stride::internal {

// `socket_path` and `ticket` are the daemon's answer to the call that made the ticket. UNAVAILABLE
// when the socket is out of reach or the ticket is not good any more. Blocks for a round trip, at
// most some seconds.
Result<Descriptor> FetchDescriptor(const Channels& channels, const std::string& socket_path,
                                   const std::string& ticket);

// The same, with the connection that it came by, for what lasts as long as that is open.
struct Ticketed {
  Descriptor descriptor, connection;
};
Result<Ticketed> FetchWithConnection(const Channels& channels, const std::string& socket_path,
                                     const std::string& ticket);

}  // namespace stride::internal
