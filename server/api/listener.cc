#include "server/api/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/log.h"

namespace stride::api {
namespace {

constexpr int kAcceptsInTurn = 64;
constexpr int kExhaustedPauseMs = 20;

UniqueFd OpenReserve() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// The peer for the counts of a connection.
std::string PeerOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  char text[INET6_ADDRSTRLEN] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "gone";
  if (storage.ss_family == AF_INET) {
    return inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&storage)->sin_addr, text,
                     sizeof(text));
  }
  if (storage.ss_family == AF_INET6) {
    return inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr, text,
                     sizeof(text));
  }
  ucred credentials{};
  size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return "unix";
  return absl::StrCat("uid:", credentials.uid);
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Listener::Listener(std::vector<ListeningSocket> sockets, ListenerLimits limits, Deliver deliver)
    : sockets_(std::move(sockets)),
      deliver_(std::move(deliver)),
      table_(limits.max_connections, limits.max_per_peer) {}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(std::vector<ListeningSocket> sockets,
                                                          ListenerLimits limits, Deliver deliver) {
  std::unique_ptr<Listener> listener(new Listener(std::move(sockets), limits, std::move(deliver)));
  listener->reserve_ = OpenReserve();
  listener->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->reserve_.valid() || !listener->stop_.valid()) {
    return absl::ErrnoToStatus(errno, "starting to accept connections");
  }
  listener->thread_ = std::thread([raw = listener.get()] { raw->Run(); });
  return listener;
}

Listener::~Listener() { Stop(); }

void Listener::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  for (ListeningSocket& socket : sockets_) {
    socket.fd.Reset();
    RemoveSocketFile(socket);
  }
}

void Listener::Run() {
  std::vector<pollfd> polled;
  for (const ListeningSocket& socket : sockets_) polled.push_back({socket.fd.get(), POLLIN, 0});
  polled.push_back({stop_.get(), POLLIN, 0});
  for (;;) {
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
      LogError(absl::StrCat("waiting for connections failed, errno ", errno));
      poll(nullptr, 0, kExhaustedPauseMs);
    }
    if (polled.back().revents != 0) return;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (polled[i].revents != 0) AcceptSome(sockets_[i]);
    }
  }
}

void Listener::AcceptSome(const ListeningSocket& socket) {
  for (int i = 0; i < kAcceptsInTurn; ++i) {
    UniqueFd connection(accept4(socket.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      Admit(std::move(connection), socket);
    } else if (OutOfDescriptors(errno)) {
      if (ShedOne(socket)) continue;
      poll(nullptr, 0, kExhaustedPauseMs);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      // EAGAIN: the queue is empty. Any other error belongs to one connection, which accept reports
      // in its place.
      return;
    }
  }
}

void Listener::Admit(UniqueFd connection, const ListeningSocket& socket) {
  std::string peer = PeerOf(connection.get());
  switch (table_.Admit(connection.get(), peer)) {
    case ConnectionTable::Verdict::kTooMany:
      if (stats_.refused_total++ == 0)
        LogWarning("connections refused: the limit --max-connections is reached");
      return;
    case ConnectionTable::Verdict::kTooManyOfPeer:
      if (stats_.refused_peer++ == 0) {
        LogWarning(absl::StrCat(
            "connections refused: the limit --max-connections-per-peer is reached by ", peer));
      }
      return;
    case ConnectionTable::Verdict::kAdmitted:
      break;
  }
  if (socket.address.kind == Address::Kind::kTcp) {
    int on = 1;
    setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ++stats_.accepted;
  deliver_(std::move(connection), socket.fd.get(), peer);
}

bool Listener::ShedOne(const ListeningSocket& socket) {
  if (!reserve_.valid()) {
    reserve_ = OpenReserve();
    if (!reserve_.valid()) return false;
  }
  reserve_.Reset();
  UniqueFd connection(accept4(socket.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  bool shed = connection.valid();
  connection.Reset();
  reserve_ = OpenReserve();
  if (shed && stats_.refused_exhausted++ == 0)
    LogWarning("connections refused: out of file descriptors");
  return shed;
}

}  // namespace stride::api
