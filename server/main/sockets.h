#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/listening_socket.h"
#include "server/keeper/keeper.h"
#include "server/main/config.h"

namespace stride {

struct OpenedSockets {
  std::vector<api::ListeningSocket> sockets;
  std::vector<std::string> kept_names;  // of those that the keeper has
};

// All that the daemon listens on: what a service manager passed, and what the configuration names,
// or the defaults. Those that an earlier daemon left with the keeper are gone on with, so that
// clients who connect while none runs just wait; new ones are stored there. Takes its own out of
// `kept`; one that the configuration no longer names is let go.
absl::StatusOr<OpenedSockets> OpenSockets(const Config& config, keeper::Keeper* keeper,
                                          std::vector<NamedFd> passed, std::vector<NamedFd>* kept);

}  // namespace stride
