#include "bench/service/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "bench/service/process.h"

namespace stride::bench {
namespace {

// As the client of the daemon cuts its messages.
constexpr size_t kChunk = 1 << 20;

struct Request {
  uint64_t to_server = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

bool WriteAll(int fd, const void* data, size_t size) {
  auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(fd, at, std::min(size, kChunk), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    size -= sent;
  }
  return true;
}

bool ReadAll(int fd, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = recv(fd, at, std::min(size, kChunk), 0);
    if (received <= 0) return false;
    at += received;
    size -= received;
  }
  return true;
}

void ServeConnection(int fd, std::vector<std::byte>& memory) {
  for (Request request; ReadAll(fd, &request, sizeof(request));) {
    if (request.offset + request.bytes > memory.size()) break;
    std::byte* at = memory.data() + request.offset;
    const char done = 1;
    const bool good = request.to_server ? ReadAll(fd, at, request.bytes) && WriteAll(fd, &done, 1)
                                        : WriteAll(fd, at, request.bytes);
    if (!good) break;
  }
  close(fd);
}

void SetNoDelay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails on Unix sockets: no matter
}

void Accept(int listener, std::vector<std::byte>& memory) {
  for (int fd; (fd = accept(listener, nullptr, nullptr)) >= 0;) {
    SetNoDelay(fd);
    std::thread([fd, &memory] { ServeConnection(fd, memory); }).detach();
  }
}

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
  return name;
}

sockaddr_in TcpName(uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(port);
  return name;
}

int Connect(const std::string& address) {
  if (address.starts_with("unix:")) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un name = UnixName(address.substr(5));
    if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) return fd;
    close(fd);
    return -1;
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto name = TcpName(std::stoi(address.substr(address.rfind(':') + 1)));
  SetNoDelay(fd);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) return fd;
  close(fd);
  return -1;
}

// Runs `move(socket, offset, size)` for even parts of `total`, all at once.
bool ForEachBatch(const std::vector<int>& sockets, size_t total,
                  const std::function<bool(int, size_t, size_t)>& move) {
  const size_t step = (total + sockets.size() - 1) / sockets.size();
  std::atomic<bool> good = true;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < sockets.size(); ++i) {
    const size_t begin = std::min(total, i * step), end = std::min(total, begin + step);
    auto part = [&, i, begin, end] {
      if (sockets[i] < 0 || !move(sockets[i], begin, end - begin)) good = false;
    };
    if (i + 1 < sockets.size()) {
      threads.emplace_back(part);
    } else {
      part();
    }
  }
  for (auto& thread : threads) thread.join();
  return good;
}

}  // namespace

int ServeRawSocket(const std::string& folder, int64_t bytes) {
  static std::vector<std::byte> memory;  // outlives the detached threads
  memory.assign(static_cast<size_t>(bytes), std::byte{1});
  const int unix_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un unix_name = UnixName(folder + "/raw");
  const int tcp_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in tcp_name = TcpName(0);
  socklen_t size = sizeof(tcp_name);
  if (bind(unix_listener, reinterpret_cast<const sockaddr*>(&unix_name), sizeof(unix_name)) != 0 ||
      bind(tcp_listener, reinterpret_cast<const sockaddr*>(&tcp_name), sizeof(tcp_name)) != 0 ||
      listen(unix_listener, 64) != 0 || listen(tcp_listener, 64) != 0 ||
      getsockname(tcp_listener, reinterpret_cast<sockaddr*>(&tcp_name), &size) != 0) {
    std::perror("service_bench: listening");
    return 1;
  }
  for (int listener : {unix_listener, tcp_listener})
    std::thread([listener] { Accept(listener, memory); }).detach();
  std::printf("serving 127.0.0.1:%d\n", ntohs(tcp_name.sin_port));
  std::fflush(stdout);
  WaitForEndOfInput();
  _exit(0);  // connections may still be served
}

RawSocketClient::RawSocketClient(const std::string& address, int num_streams) {
  for (int i = 0; i < num_streams; ++i) sockets_.push_back(Connect(address));
}

RawSocketClient::~RawSocketClient() {
  for (int fd : sockets_) {
    if (fd >= 0) close(fd);
  }
}

bool RawSocketClient::Send(std::span<const std::byte> data) {
  return ForEachBatch(sockets_, data.size(), [&](int fd, size_t offset, size_t size) {
    const Request request{1, offset, size};
    char done;
    return WriteAll(fd, &request, sizeof(request)) && WriteAll(fd, data.data() + offset, size) &&
           ReadAll(fd, &done, 1);
  });
}

bool RawSocketClient::Receive(std::span<std::byte> data) {
  return ForEachBatch(sockets_, data.size(), [&](int fd, size_t offset, size_t size) {
    const Request request{0, offset, size};
    return WriteAll(fd, &request, sizeof(request)) && ReadAll(fd, data.data() + offset, size);
  });
}

}  // namespace stride::bench
