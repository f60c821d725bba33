#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// Passes descriptors, which gRPC cannot transport: those of regions, and of local connections. A
// client connects (SOCK_SEQPACKET), sends a ticket and gets one packet with the ticket's
// descriptor. It holds a region until it closes the connection. Any other packet, or none for a
// while, closes the connection.
//
// One thread. The number of connections that hold nothing is bounded, and a new one replaces the
// oldest, so that silent ones lock out no client. There are at most as many holding connections as
// regions.
class TicketSocket {
 public:
  static constexpr size_t kMaxConnections = 64;
  static constexpr size_t kMaxOfUser = 16;
  static constexpr absl::Duration kPatience = absl::Seconds(2);

  struct Stats {
    std::atomic<int64_t> handed_out{0};
    std::atomic<int64_t> refused{0};  // packets without a valid ticket
    std::atomic<int64_t> evicted{0};  // closed for a new connection, or silent for too long
  };
  // Result of redeeming a ticket.
  struct Redeemed {
    std::shared_ptr<const void> owner;  // keeps the descriptor open
    int fd = -1;
    std::string region;  // region to hold; empty: the connection is closed
  };
  // Called on the socket's thread; must not block. let_go is not called for regions that are held
  // when the socket ends.
  struct Calls {
    std::function<absl::StatusOr<Redeemed>(std::string_view ticket)> redeem;
    std::function<void(const std::string& region)> hold;
    // `connection` stays open until its last copy is destroyed: its end shows the client that the
    // region is released.
    std::function<void(const std::string& region, std::shared_ptr<const void> connection)> let_go;
  };

  // Listens next to the socket for calls, `calls_path`, with that socket's group and mode. Replaces
  // the file of an earlier daemon.
  static absl::StatusOr<std::unique_ptr<TicketSocket>> Start(const std::string& calls_path,
                                                             Calls calls);
  // Stops, and removes the file unless a later daemon has replaced it.
  ~TicketSocket();

  const std::string& path() const { return path_; }
  const Stats& stats() const { return stats_; }

 private:
  struct Connection {
    UniqueFd fd;
    uid_t user = 0;
    SteadyTime deadline;
  };

  struct Holder {
    std::shared_ptr<const UniqueFd> fd;
    std::string region;
  };

  TicketSocket(std::string path, Calls calls) : path_(std::move(path)), calls_(std::move(calls)) {}
  absl::Status Bind(const std::string& calls_path);
  void Run();
  void AcceptSome();
  // Closes the same user's oldest connection if that user has too many, else the oldest of all.
  void MakeRoom(uid_t user);
  // Handles the connection's packet, if it has sent one. True: the connection has ended, or is a
  // holder.
  bool Serve(Connection& connection);

  const std::string path_;
  const Calls calls_;
  UniqueFd socket_, stop_;
  ino_t inode_ = 0;
  std::list<Connection> connections_;  // by age
  std::list<Holder> holders_;
  Stats stats_;
  std::thread thread_;
};

}  // namespace stride::api
