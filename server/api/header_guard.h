#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace stride::api {

// Ends connections whose header blocks do not end (HeaderBlocks), and those of peers that cancel
// calls without end (ResetBudget; of an encrypted connection the peer is not known here, and it has
// a budget of its own). gRPC 1.51 keeps all of a block until its end and reads it anew with each
// frame (CVE-2023-33953), has no bound for it, and lets nobody look at what it reads. Nor has it
// one for messages that are not complete, or that nobody has taken: connections that hold too much
// of that (HeldBytes), or for too long (StreamBytes), end too. So this file has a `recvmsg`, an
// `SSL_read`, a `sendmsg` and an `SSL_write` of its own, which stand before those of the C library
// and of OpenSSL: what gRPC has just read or written is looked at where it lies, and once it is too
// much, reading fails, so that gRPC itself closes the connection. A connection that says nothing is
// looked at when it answers gRPC's next ping, and ends when it does not.
//
// All other sockets of the process are read as ever. Any thread.
class HeaderGuard {
 public:
  // FAILED_PRECONDITION: gRPC would read past us, since something stands before us in turn.
  static absl::Status Check();

  // `fd` is a client's connection, about to be handed to gRPC, whose bytes are HTTP/2 as they are.
  // `peer` is whose account it is, and for the log.
  static void Watch(int fd, const std::string& peer);
  // An encrypted one. Every server's end of a TLS connection is watched; this tells whose it is.
  static void WatchEncrypted(int fd, const std::string& peer);

  // How many calls a peer may cancel at once.
  static void SetResetBurst(int burst);

  // In how long the first message of a call must be complete.
  static void SetMessageTime(absl::Duration time);

  // What all connections hold now.
  static int64_t held_bytes();
  // Connections that were ended, since the process started.
  static int64_t ended();
};

}  // namespace stride::api
