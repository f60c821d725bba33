#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/base/unique_fd.h"

namespace stride::fd_store {

// A short text with at most one descriptor.
struct Packet {
  std::string text;
  UniqueFd fd;
};

// Sends one packet on a connected SOCK_SEQPACKET socket, or to `address` on a SOCK_DGRAM socket.
// UNAVAILABLE: no process listens.
absl::Status SendPacket(int socket, const std::string& text, int fd = -1,
                        const std::string& address = "");

// Blocks for one packet. UNAVAILABLE: the peer has closed its socket.
absl::Status ReceivePacket(int socket, Packet* packet);

}  // namespace stride::fd_store
