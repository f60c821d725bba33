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
#include "server/base/unique_fd.h"
#include "server/scheduler/engine.h"

namespace stride::api {

// Hands out the descriptors of regions: who connects (SOCK_SEQPACKET) and sends a ticket gets one
// packet with the descriptor that it is good for, and the connection is closed; anything else, or
// nothing for a while, only closes it. One thread and a bounded number of connections, of which a
// newcomer takes the oldest one's place: those that say nothing keep nobody out.
class RegionSocket {
 public:
  static constexpr size_t kMaxConnections = 64;
  static constexpr size_t kMaxOfUser = 16;
  static constexpr absl::Duration kPatience = absl::Seconds(2);

  struct Stats {
    std::atomic<int64_t> handed_out{0};
    std::atomic<int64_t> refused{0};  // a packet that is no good ticket
    std::atomic<int64_t> evicted{0};  // closed for a newcomer, or said nothing
  };
  // Called on the socket's thread; must not block.
  using Redeem = std::function<absl::StatusOr<scheduler::RedeemedRegion>(std::string_view ticket)>;

  // Beside the socket that calls come to, `calls_path`, and open to the same users: its group and
  // mode are taken over. A file that an earlier daemon left is replaced.
  static absl::StatusOr<std::unique_ptr<RegionSocket>> Start(const std::string& calls_path,
                                                             Redeem redeem);
  // Stops, and removes the file unless a successor has replaced it.
  ~RegionSocket();

  const std::string& path() const { return path_; }
  const Stats& stats() const { return stats_; }

 private:
  struct Connection {
    UniqueFd fd;
    uid_t user = 0;
    absl::Time deadline;
  };

  RegionSocket(std::string path, Redeem redeem)
      : path_(std::move(path)), redeem_(std::move(redeem)) {}
  absl::Status Bind(const std::string& calls_path);
  void Run();
  void AcceptSome();
  // Of the same user where that has too many, else the oldest of all.
  void MakeRoom(uid_t user);
  // What it says, as far as it has said anything. True: it is done with.
  bool Serve(Connection& connection);

  const std::string path_;
  const Redeem redeem_;
  UniqueFd socket_, stop_;
  ino_t inode_ = 0;
  std::list<Connection> connections_;  // by age
  Stats stats_;
  std::thread thread_;
};

}  // namespace stride::api
