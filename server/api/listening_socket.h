#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/api/address.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// A socket that accepts connections: non-blocking, close-on-exec.
struct ListeningSocket {
  UniqueFd fd;
  Address address;     // with the port that was really taken
  bool owned = false;  // we made the socket file, and remove it at the end
};

// Whether addresses that other machines reach are allowed: where calls are encrypted and
// authenticated, or a person has said that they need not be.
enum class Reach { kLocalOnly, kAnywhere };

// Binds and listens. A Unix socket gets mode 0660; a socket file that nobody listens on any more is
// replaced, one with a live daemon is FAILED_PRECONDITION.
absl::StatusOr<ListeningSocket> Listen(const Address& address, Reach reach);

// Takes over a descriptor that listens already. `owned`: we once made it with Listen.
absl::StatusOr<ListeningSocket> AdoptSocket(UniqueFd fd, Reach reach, bool owned = false);

// Removes the socket file, if it is ours and still the same.
void RemoveSocketFile(const ListeningSocket& socket);

}  // namespace stride::api
