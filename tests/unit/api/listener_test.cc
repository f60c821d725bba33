// The accept loop in front of the whole server, used by hostile peers.

#include "server/api/listener.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include <grpcpp/create_channel.h>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "server/api/header_blocks.h"
#include "server/api/header_guard.h"
#include "server/base/environment.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::TestServer;

UniqueFd ConnectTo(const std::string& target) {
  std::string path = target.substr(5);  // without unix:
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) fd.Reset();
  return fd;
}

bool ClosedByPeer(const UniqueFd& fd, int timeout_ms) {
  pollfd polled{fd.get(), POLLIN, 0};
  char byte;
  while (poll(&polled, 1, timeout_ms) == 1) {
    // The server begins with its settings; those are not the end.
    if (recv(fd.get(), &byte, 1, 0) <= 0) return true;
  }
  return false;
}

bool Answers(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(100)));
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  return grpc::health::v1::Health::NewStub(channel)->Check(&context, request, &response).ok();
}

TEST(ListenerTest, ConnectionsOverTheLimitAreClosed) {
  FrontOptions options;
  options.listener.max_connections = 3;
  options.listener.max_per_peer = 100;
  TestServer server(options);
  std::vector<UniqueFd> held;
  for (int i = 0; i < 3; ++i) held.push_back(ConnectTo(server.target()));
  UniqueFd extra = ConnectTo(server.target());
  EXPECT_TRUE(ClosedByPeer(extra, 5000));
  EXPECT_EQ(server.front().connections().refused_total, 1);
  held.clear();
  EXPECT_TRUE(Answers(server.Connect()));
}

TEST(ListenerTest, EndlessHeadersEndOnlyTheirConnection) {
  TestServer server;
  auto channel = server.Connect();
  ASSERT_TRUE(Answers(channel));
  int64_t ended = HeaderGuard::ended();
  UniqueFd fd = ConnectTo(server.target());
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  bytes += std::string("\0\0\0\1\0\0\0\0\1", 9);
  for (uint64_t sent = 0; sent <= HeaderBlocks::kMaxBytes; sent += 16384)
    bytes += std::string("\0\x40\0\x9\0\0\0\0\1", 9) + std::string(16384, '\0');
  send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(ClosedByPeer(fd, 5000));
  EXPECT_EQ(HeaderGuard::ended(), ended + 1);
  EXPECT_TRUE(Answers(channel));
}

std::string Frame(uint8_t type, uint8_t flags, const std::string& payload) {
  const size_t size = payload.size();
  const char header[] = {
      char(size >> 16), char(size >> 8), char(size), char(type), char(flags), 0, 0, 0, 1};
  return std::string(header, sizeof(header)) + payload;
}

// An HPACK header field with literal name and value.
std::string Field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + char(name.size()) + name + char(value.size()) + value;
}

bool HoldsUntil(absl::FunctionRef<bool(int64_t)> reached) {
  for (int i = 0; i < 1000 && !reached(HeaderGuard::held_bytes()); ++i)
    absl::SleepFor(absl::Milliseconds(10));
  return reached(HeaderGuard::held_bytes());
}

TEST(ListenerTest, ClosedConnectionHoldsNoBytes) {
  constexpr size_t kSent = 60000;
  UniqueFd fd;
  {
    TestServer server;
    fd = ConnectTo(server.target());
    const std::string headers = Field(":method", "POST") + Field(":scheme", "http") +
                                Field(":path", "/grpc.health.v1.Health/Check") +
                                Field(":authority", "localhost") + Field("te", "trailers") +
                                Field("content-type", "application/grpc");
    std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9) +
                        Frame(1, 4, headers);
    // The first part of a message of 1 MiB.
    bytes += Frame(0, 0, std::string("\0\0\x10\0\0", 5) + std::string(10000, 'x'));
    for (int i = 1; i < 6; ++i) bytes += Frame(0, 0, std::string(10000, 'x'));
    send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(HoldsUntil([](int64_t held) { return held >= int64_t{kSent}; }));
  }
  EXPECT_TRUE(HoldsUntil([](int64_t held) { return held == 0; }));
}

TEST(ListenerTest, OnePeerCannotTakeAllConnections) {
  FrontOptions options;
  options.listener.max_connections = 100;
  options.listener.max_per_peer = 2;
  TestServer server(options);
  UniqueFd a = ConnectTo(server.target()), b = ConnectTo(server.target()),
           c = ConnectTo(server.target());
  EXPECT_TRUE(ClosedByPeer(c, 5000));
  EXPECT_EQ(server.front().connections().refused_peer, 1);
}

TEST(ListenerTest, TcpConnectionIsServed) {
  stride::testing::FakeEngine engine;
  metrics::Sampler sampler({[&] { return engine.devices().List(); },
                            [&] { return engine.devices().Sample(); }, nullptr});
  std::vector<ListeningSocket> sockets;
  sockets.push_back(*Listen(*ParseAddress("tcp:127.0.0.1:0"), Reach::kLocalOnly));
  auto front = Front::Start({}, &engine, &sampler, std::move(sockets));
  ASSERT_TRUE(front.ok());
  auto channel =
      grpc::CreateChannel((*front)->addresses()[0].ToTarget(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(Answers(channel));
}

// The hole of gRPC 1.51 (CVE-2023-4785): once accept had failed for want of descriptors, its own
// loop never accepted again. Here the limits are set so high that descriptors do run out.
TEST(ListenerTest, SurvivesRunningOutOfDescriptors) {
  FrontOptions options;
  options.listener.max_connections = 100000;
  options.listener.max_per_peer = 100000;
  TestServer server(options);
  EXPECT_TRUE(Answers(server.Connect()));
  int ready[2];
  int done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  std::string path = server.target().substr(5);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  rlimit saved;
  getrlimit(RLIMIT_NOFILE, &saved);
  pid_t child = fork();
  if (child == 0) {
    // Only calls that are safe after fork in a process with threads.
    char byte = 0;
    for (int i = 0; i < 300; ++i) {
      int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) byte = 1;
    }
    (void)!write(ready[1], &byte, 1);
    (void)!read(done[0], &byte, 1);
    _exit(0);
  }
  rlimit low = saved;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  char failed = 0;
  ASSERT_EQ(read(ready[0], &failed, 1), 1);
  EXPECT_EQ(failed, 0);
  SteadyTime give_up = Now() + absl::Seconds(100);
  while (server.front().connections().refused_exhausted == 0 && Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_GT(server.front().connections().refused_exhausted, 0)
      << "the limit was never reached: the test shows nothing";
  (void)!write(done[1], "x", 1);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Answers(server.Connect())) << "still at the low limit";
  setrlimit(RLIMIT_NOFILE, &saved);
  EXPECT_TRUE(Answers(server.Connect()));
}

TEST(ListenerTest, StopEndsAcceptingAndRemovesTheSocket) {
  TestServer server;
  EXPECT_TRUE(Answers(server.Connect()));
  server.front().Stop(Now() + absl::Seconds(5));
  EXPECT_NE(access(server.target().substr(5).c_str(), F_OK), 0);
  EXPECT_FALSE(ConnectTo(server.target()).valid());
}

}  // namespace
}  // namespace stride::api
