#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/local/frame_socket.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// The socket where local connections begin. A client connects and sends a ticket in an OPEN frame;
// the connection then leaves the listener. Any other bytes, or too few for a while, close it.
//
// One thread. The number of connections that have not sent their ticket is bounded, and a new one
// replaces the oldest, so that silent ones lock out no client.
class LocalListener {
 public:
  static constexpr size_t kTicketBytes = 32;
  static constexpr size_t kMaxConnections = 64;
  static constexpr size_t kMaxOfUser = 16;
  static constexpr absl::Duration kPatience = absl::Seconds(2);

  struct Stats {
    std::atomic<int64_t> admitted{0};
    std::atomic<int64_t> refused{0};  // without a valid ticket
    std::atomic<int64_t> evicted{0};  // closed for a new connection, or silent for too long
  };
  // Takes a connection over, whose OPEN frame was read; false: the ticket is not valid. Runs on the
  // listener's thread and must not block.
  using Admit = std::function<bool(std::string_view ticket, UniqueFd connection)>;

  // Listens next to the socket for calls, `calls_path`, with that socket's group and mode. Replaces
  // the file of an earlier daemon.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(const std::string& calls_path,
                                                              Admit admit);
  // Stops, and removes the file unless a later daemon has replaced it.
  ~LocalListener();

  const std::string& path() const { return path_; }
  const Stats& stats() const { return stats_; }

 private:
  struct Connection {
    UniqueFd fd;
    uid_t user = 0;
    SteadyTime deadline;
    std::array<char, FrameSocket::kHeaderBytes + kTicketBytes> opening;
    size_t received = 0;  // bytes of `opening`
  };

  LocalListener(std::string path, Admit admit) : path_(std::move(path)), admit_(std::move(admit)) {}
  absl::Status Bind(const std::string& calls_path);
  void Run();
  void AcceptSome();
  // Closes the same user's oldest connection if that user has too many, else the oldest of all.
  void MakeRoom(uid_t user);
  // Reads available bytes of the OPEN frame. True: the connection was admitted or has ended.
  bool Serve(Connection& connection);

  const std::string path_;
  const Admit admit_;
  UniqueFd socket_, stop_;
  ino_t inode_ = 0;
  std::list<Connection> connections_;  // by age
  Stats stats_;
  std::thread thread_;
};

}  // namespace stride::api
