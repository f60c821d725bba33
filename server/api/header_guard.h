#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stride::api {

// Ends connections whose header blocks do not end (HeaderBlocks), and those of peers that cancel
// calls without end (ResetBudget; of an encrypted connection the peer is not known here, and it has
// a budget of its own). gRPC 1.51 keeps all of a block until its end and reads it anew with each
// frame (CVE-2023-33953), has no bound for it, and lets nobody look at what it reads. So this file
// has a `recvmsg` and an `SSL_read` of its own, which stand before those of the C library and of
// OpenSSL: what gRPC has just read is looked at where it lies, and once it is too much, reading
// fails, so that gRPC itself closes the connection.
//
// All other sockets of the process are read as ever. Any thread.
class HeaderGuard {
 public:
  // FAILED_PRECONDITION: gRPC would read past us, since something stands before us in turn.
  static absl::Status Check();

  // `fd` is a client's connection, about to be handed to gRPC, whose bytes are HTTP/2 as they are.
  // Encrypted ones need no call: every server's end of a TLS connection is watched. `peer` is for
  // the log.
  static void Watch(int fd, const std::string& peer);

  // How many calls a peer may cancel at once.
  static void SetResetBurst(int burst);

  // Connections that were ended, since the process started.
  static int64_t ended();
};

}  // namespace stride::api
