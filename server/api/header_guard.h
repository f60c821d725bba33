#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace stride::api {

// Ends connections whose header blocks do not end (HeaderBlocks), and those of peers that cancel
// calls without end (ResetBudget; the peer of an encrypted connection is not known here, so that
// connection has its own budget). gRPC 1.51 keeps a whole block until its end and parses it again
// with each frame (CVE-2023-33953). It has no bound for blocks and no hook for the bytes that it
// reads. It also has no bound for messages that are incomplete or not taken. So connections end
// that hold too many such bytes (HeldBytes), or hold them for too long (StreamBytes). This file
// defines `close`, `recvmsg`, `SSL_read`, `sendmsg` and `SSL_write`, which take precedence over
// those of the C library and of OpenSSL. They inspect the bytes of each call in place. Beyond a
// bound, reads fail, so that gRPC itself closes the connection. A silent connection is checked when
// it answers gRPC's next ping, and ends when it does not.
//
// All other sockets of the process are read as ever. Any thread.
class HeaderGuard {
 public:
  // FAILED_PRECONDITION: another library's functions take precedence over these, so gRPC's reads
  // would not be checked.
  static absl::Status Check();

  // `fd`: a client's unencrypted connection, before it is passed to gRPC. `peer`: the account of
  // its bytes and resets, and its name in the log.
  static void Watch(int fd, const std::string& peer);
  // Names the peer of an encrypted connection. The server's end of each TLS connection is watched.
  static void WatchEncrypted(int fd, const std::string& peer);

  // Sets the number of calls that a peer may cancel at once.
  static void SetResetBurst(int burst);

  // Sets the time within which the first message of a call must be complete.
  static void SetMessageTime(absl::Duration time);

  // Bytes that all connections hold now.
  static int64_t held_bytes();
  // Number of connections ended since the process started.
  static int64_t ended();
};

}  // namespace stride::api
