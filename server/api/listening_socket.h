#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/api/address.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// A socket that accepts connections: non-blocking, close-on-exec.
struct ListeningSocket {
  UniqueFd fd;
  Address address;     // with the actual port
  bool owned = false;  // this process created the socket file, and removes it at the end
};

// Whether addresses that other machines can reach are allowed: if calls are encrypted and
// authenticated, or the configuration permits unauthenticated calls.
enum class Reach { kLocalOnly, kAnywhere };

// Binds and listens. A Unix socket gets mode 0660. A socket file without a listener is replaced;
// with a live daemon the result is FAILED_PRECONDITION.
absl::StatusOr<ListeningSocket> Listen(const Address& address, Reach reach);

// Takes over a listening descriptor. `owned`: it was made by Listen.
absl::StatusOr<ListeningSocket> AdoptSocket(UniqueFd fd, Reach reach, bool owned = false);

// Removes the socket file, if it is owned and has not been replaced.
void RemoveSocketFile(const ListeningSocket& socket);

}  // namespace stride::api
