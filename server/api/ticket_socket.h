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

// Hands out descriptors, which gRPC cannot carry: of regions, and of local connections. Who
// connects (SOCK_SEQPACKET) and sends a ticket gets one packet with the descriptor that it is good
// for, and holds a region until it closes the connection; anything else, or nothing for a while,
// closes it. One thread and a bounded number of connections that hold nothing, of which a newcomer
// takes the oldest one's place: those that say nothing keep nobody out. Of those that hold a region
// there are no more than regions.
class TicketSocket {
 public:
  static constexpr size_t kMaxConnections = 64;
  static constexpr size_t kMaxOfUser = 16;
  static constexpr absl::Duration kPatience = absl::Seconds(2);

  struct Stats {
    std::atomic<int64_t> handed_out{0};
    std::atomic<int64_t> refused{0};  // a packet that is no good ticket
    std::atomic<int64_t> evicted{0};  // closed for a newcomer, or said nothing
  };
  // What a ticket is good for.
  struct Redeemed {
    std::shared_ptr<const void> owner;  // of the descriptor
    int fd = -1;
    std::string region;  // to be held; empty: the connection is of no more use
  };
  // Called on the socket's thread; must not block. Who holds a region when the socket ends does not
  // let go.
  struct Calls {
    std::function<absl::StatusOr<Redeemed>(std::string_view ticket)> redeem;
    std::function<void(const std::string& region)> hold;
    // `connection` stays open until the last copy goes: its end shows the client that what it held
    // is given up.
    std::function<void(const std::string& region, std::shared_ptr<const void> connection)> let_go;
  };

  // Beside the socket that calls come to, `calls_path`, and open to the same users: its group and
  // mode are taken over. A file that an earlier daemon left is replaced.
  static absl::StatusOr<std::unique_ptr<TicketSocket>> Start(const std::string& calls_path,
                                                             Calls calls);
  // Stops, and removes the file unless a successor has replaced it.
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
  // Of the same user where that has too many, else the oldest of all.
  void MakeRoom(uid_t user);
  // What it says, as far as it has said anything. True: it is done with, or among the holders.
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
