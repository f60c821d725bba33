#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/connection_table.h"
#include "server/api/listening_socket.h"
#include "server/base/unique_fd.h"

namespace stride::api {

struct ListenerLimits {
  size_t max_connections = 1024;
  size_t max_per_peer = 512;  // per IP address, or per user on a Unix socket
};

// Accepts connections on its own thread and delivers them. gRPC 1.51's own loop stops for good once
// descriptors run out (CVE-2023-4785). This one bounds the connections that it admits. Without free
// descriptors it still accepts each connection and closes it, so that the queue empties and clients
// get an error.
class Listener {
 public:
  struct Stats {
    std::atomic<int64_t> accepted{0};
    std::atomic<int64_t> refused_total{0};      // over max_connections
    std::atomic<int64_t> refused_peer{0};       // over max_per_peer
    std::atomic<int64_t> refused_exhausted{0};  // no descriptor left
  };
  // Called on the listener's thread; must not block. `peer`: key under which the connection is
  // counted.
  using Deliver =
      std::function<void(UniqueFd connection, int listening_fd, const std::string& peer)>;

  static absl::StatusOr<std::unique_ptr<Listener>> Start(std::vector<ListeningSocket> sockets,
                                                         ListenerLimits limits, Deliver deliver);
  // Stops.
  ~Listener();

  // Closes the listening sockets and removes their files; delivered connections stay open.
  // Idempotent.
  void Stop();

  const std::vector<ListeningSocket>& sockets() const { return sockets_; }
  const Stats& stats() const { return stats_; }

 private:
  Listener(std::vector<ListeningSocket> sockets, ListenerLimits limits, Deliver deliver);
  void Run();
  // Accepts waiting connections, a bounded number at once so that sockets take turns.
  void AcceptSome(const ListeningSocket& socket);
  void Admit(UniqueFd connection, const ListeningSocket& socket);
  // Uses the reserved descriptor to take one connection off the queue and close it. False when
  // there is no reserve.
  bool ShedOne(const ListeningSocket& socket);

  std::vector<ListeningSocket> sockets_;
  const Deliver deliver_;
  ConnectionTable table_;
  UniqueFd reserve_;  // a spare descriptor for ShedOne
  UniqueFd stop_;     // eventfd
  Stats stats_;
  std::thread thread_;
};

}  // namespace stride::api
