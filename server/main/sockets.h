#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/listening_socket.h"
#include "server/fd_store/fd_store.h"
#include "server/main/config.h"

namespace stride {

struct OpenedSockets {
  std::vector<api::ListeningSocket> sockets;
  std::vector<std::string> kept_names;  // names of the sockets in the FdStore
};

// Opens all listening sockets: those passed by a service manager, and the configured ones or the
// defaults. Sockets that an earlier daemon stored in the FdStore are reused, so that clients that
// connect during a restart just wait; new ones are stored there. Takes its entries out of `kept`,
// and closes those that the configuration no longer names.
absl::StatusOr<OpenedSockets> OpenSockets(const Config& config, fd_store::FdStore* fd_store,
                                          std::vector<NamedFd> passed, std::vector<NamedFd>* kept);

}  // namespace stride
