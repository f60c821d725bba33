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
  size_t max_per_peer = 512;  // of one IP address, or of one user on a Unix socket
};

// Accepts connections on its own thread and hands them on. It exists because gRPC 1.51's own loop
// stops for good once descriptors run out (CVE-2023-4785): this one bounds what it admits, and out
// of descriptors still takes each connection and closes it, so that the queue empties and clients
// know.
class Listener {
 public:
  struct Stats {
    std::atomic<int64_t> accepted{0};
    std::atomic<int64_t> refused_total{0};      // over max_connections
    std::atomic<int64_t> refused_peer{0};       // over max_per_peer
    std::atomic<int64_t> refused_exhausted{0};  // no descriptor left
  };
  // Called on the listener's thread; must not block. `peer` is whom the connection is counted
  // under.
  using Deliver =
      std::function<void(UniqueFd connection, int listening_fd, const std::string& peer)>;

  static absl::StatusOr<std::unique_ptr<Listener>> Start(std::vector<ListeningSocket> sockets,
                                                         ListenerLimits limits, Deliver deliver);
  // Stops.
  ~Listener();

  // Closes the listening sockets and removes their files; what was handed on lives on. Idempotent.
  void Stop();

  const std::vector<ListeningSocket>& sockets() const { return sockets_; }
  const Stats& stats() const { return stats_; }

 private:
  Listener(std::vector<ListeningSocket> sockets, ListenerLimits limits, Deliver deliver);
  void Run();
  // Accepts what waits, a bounded number at once so that sockets take turns.
  void AcceptSome(const ListeningSocket& socket);
  void Admit(UniqueFd connection, const ListeningSocket& socket);
  // Uses the reserved descriptor to take one connection off the queue and close it. False when
  // there is no reserve.
  bool ShedOne(const ListeningSocket& socket);

  std::vector<ListeningSocket> sockets_;
  const Deliver deliver_;
  ConnectionTable table_;
  UniqueFd reserve_;  // held so that there is one to give up
  UniqueFd stop_;     // eventfd
  Stats stats_;
  std::thread thread_;
};

}  // namespace stride::api
