// The daemon's end of a local connection, for tests.
#pragma once

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "client/cpp/src/local_connection.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace stride::internal {

struct PeerFrame {
  uint32_t kind = 0;
  uint64_t timeout_ns = 0;
  std::string bytes;
};

inline std::string Frame(uint32_t kind, std::string_view bytes, uint64_t timeout_ns = 0) {
  std::string frame(16, '\0');
  const auto size = static_cast<uint32_t>(bytes.size());
  std::memcpy(frame.data(), &size, 4);
  std::memcpy(frame.data() + 4, &kind, 4);
  std::memcpy(frame.data() + 8, &timeout_ns, 8);
  return frame.append(bytes);
}

inline std::string StatusFrame(int code, const std::string& reason) {
  google::rpc::Status status;
  status.set_code(code);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  status.add_details()->PackFrom(info);
  return Frame(v1::LOCAL_FRAME_STATUS, status.SerializeAsString());
}

class LocalPeer {
 public:
  explicit LocalPeer(Descriptor socket) : socket_(std::move(socket)) {}

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return;  // the client has closed the connection
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void AwaitThatAllIsRead() {
    for (int unread = 1; unread != 0; std::this_thread::yield())
      ASSERT_EQ(ioctl(socket_.get(), SIOCOUTQ, &unread), 0);
  }
  // Returns false at the end.
  bool Receive(PeerFrame* frame) {
    std::string header(16, '\0');
    if (!ReceiveAll(header)) return false;
    uint32_t size = 0;
    std::memcpy(&size, header.data(), 4);
    std::memcpy(&frame->kind, header.data() + 4, 4);
    std::memcpy(&frame->timeout_ns, header.data() + 8, 8);
    frame->bytes.resize(size);
    return ReceiveAll(frame->bytes);
  }
  bool ReceiveAll(std::string& bytes) {
    return bytes.empty() || recv(socket_.get(), bytes.data(), bytes.size(), MSG_WAITALL) ==
                                static_cast<ssize_t>(bytes.size());
  }
  // Stops reading from the client, who can still read.
  void StopReceiving() { shutdown(socket_.get(), SHUT_RD); }
  void End() { shutdown(socket_.get(), SHUT_RDWR); }

 private:
  const Descriptor socket_;
};

inline std::pair<std::unique_ptr<LocalConnection>, std::unique_ptr<LocalPeer>> ConnectedPair() {
  int sockets[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  return {std::make_unique<LocalConnection>(Descriptor(sockets[0])),
          std::make_unique<LocalPeer>(Descriptor(sockets[1]))};
}

}  // namespace stride::internal
