#include "server/api/local/local_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/log.h"
#include "server/base/environment.h"

namespace stride::api {
namespace {

constexpr char kSuffix[] = ".local";
constexpr int kBacklog = 64;
constexpr int kAcceptsInTurn = 16;
constexpr int kExhaustedPauseMs = 20;

uid_t UserOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return static_cast<uid_t>(-1);
  return credentials.uid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Start(const std::string& calls_path,
                                                                    Admit admit) {
  std::unique_ptr<LocalListener> self(
      new LocalListener(absl::StrCat(calls_path, kSuffix), std::move(admit)));
  if (absl::Status status = self->Bind(calls_path); !status.ok()) return status;
  self->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!self->stop_.valid()) return absl::ErrnoToStatus(errno, "making an event");
  self->thread_ = std::thread([raw = self.get()] { raw->Run(); });
  return self;
}

absl::Status LocalListener::Bind(const std::string& calls_path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(name.sun_path))
    return absl::InvalidArgumentError(absl::StrCat("too long for a socket's name: ", path_));
  std::memcpy(name.sun_path, path_.data(), path_.size());
  struct stat calls;
  if (lstat(calls_path.c_str(), &calls) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", calls_path));
  // The owner of the socket for calls, which no two daemons share, also owns this name.
  struct stat found;
  if (lstat(path_.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode))
      return absl::FailedPreconditionError(absl::StrCat("something else is at ", path_));
    unlink(path_.c_str());
  }
  socket_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.valid()) return absl::ErrnoToStatus(errno, "making a socket");
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("binding ", path_));
  if (stat(path_.c_str(), &found) != 0) return absl::ErrnoToStatus(errno, path_);
  inode_ = found.st_ino;
  // No client can connect before listen(), so that no other mode is ever in force.
  if (found.st_gid != calls.st_gid && chown(path_.c_str(), -1, calls.st_gid) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("setting the group of ", path_));
  if (chmod(path_.c_str(), calls.st_mode & 0777) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("setting the mode of ", path_));
  if (listen(socket_.get(), kBacklog) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("listening on ", path_));
  return absl::OkStatus();
}

LocalListener::~LocalListener() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  struct stat found;
  if (inode_ != 0 && lstat(path_.c_str(), &found) == 0 && found.st_ino == inode_)
    unlink(path_.c_str());
}

void LocalListener::Run() {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign({{stop_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}});
    for (const Connection& connection : connections_)
      polled.push_back({connection.fd.get(), POLLIN, 0});
    absl::Duration wait = absl::InfiniteDuration();
    if (!connections_.empty()) wait = connections_.front().deadline - Now();
    const int timeout_ms =
        wait == absl::InfiniteDuration()
            ? -1
            : static_cast<int>(absl::ToInt64Milliseconds(std::max(wait, absl::ZeroDuration()))) + 1;
    if (poll(polled.data(), polled.size(), timeout_ms) < 0) {
      if (errno != EINTR) poll(nullptr, 0, kExhaustedPauseMs);
      continue;
    }
    if (polled[0].revents != 0) return;
    const SteadyTime now = Now();
    size_t i = 2;
    for (auto it = connections_.begin(); it != connections_.end(); ++i) {
      bool done = polled[i].revents != 0 && Serve(*it);
      if (!done && it->deadline <= now) {
        ++stats_.evicted;
        done = true;
      }
      it = done ? connections_.erase(it) : std::next(it);
    }
    if (polled[1].revents != 0) AcceptSome();
  }
}

void LocalListener::AcceptSome() {
  for (int i = 0; i < kAcceptsInTurn; ++i) {
    Connection connection;
    connection.fd = UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.fd.valid()) {
      // Without free descriptors the queue stays full: pause, to avoid a busy loop.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        poll(nullptr, 0, kExhaustedPauseMs);
      return;
    }
    connection.user = UserOf(connection.fd.get());
    connection.deadline = Now() + kPatience;
    // Most have sent their ticket by now.
    if (Serve(connection)) continue;
    MakeRoom(connection.user);
    connections_.push_back(std::move(connection));
  }
}

void LocalListener::MakeRoom(uid_t user) {
  auto same = [&](const Connection& connection) { return connection.user == user; };
  auto drop = connections_.end();
  if (static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(), same)) >=
      kMaxOfUser) {
    drop = std::find_if(connections_.begin(), connections_.end(), same);
  } else if (connections_.size() >= kMaxConnections) {
    drop = connections_.begin();
  }
  if (drop == connections_.end()) return;
  ++stats_.evicted;
  connections_.erase(drop);
}

bool LocalListener::Serve(Connection& connection) {
  auto& opening = connection.opening;
  // The kernel closes received descriptors, since there is no buffer for them. Bytes after the
  // frame stay in the socket.
  const ssize_t size = recv(connection.fd.get(), opening.data() + connection.received,
                            opening.size() - connection.received, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) return true;
  connection.received += static_cast<size_t>(size);
  if (connection.received < opening.size()) return false;
  const std::string_view frame(opening.data(), opening.size());
  const bool admitted =
      frame.starts_with(FrameSocket::HeaderOf(v1::LOCAL_FRAME_OPEN, kTicketBytes)) &&
      admit_(frame.substr(FrameSocket::kHeaderBytes), std::move(connection.fd));
  ++(admitted ? stats_.admitted : stats_.refused);
  return true;
}

}  // namespace stride::api
