// Limits of the front on HTTP/2 itself, observed by a client.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/unique_fd.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "stride/v1/device_service.grpc.pb.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::TestServer;

enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8
};
constexpr uint8_t kEndHeaders = 4;
constexpr uint16_t kInitialWindowSize = 4;
constexpr uint16_t kMaxHeaderListSize = 6;
constexpr uint32_t kEnhanceYourCalm = 0xb;

struct Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  std::string payload;
  uint32_t stream = 0;
};

uint32_t Number(const std::string& bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, 4);
  return ntohl(value);
}

// A connection that speaks only HTTP/2 frames.
class RawConnection {
 public:
  explicit RawConnection(const TestServer& server) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = server.target().substr(std::strlen("unix:"));
    std::memcpy(address.sun_path, path.c_str(), path.size());
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    timeval patience{.tv_sec = 20};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    Send({.type = kSettings});
  }

  void Send(const Frame& frame) {
    std::string bytes(9, '\0');
    bytes[1] = static_cast<char>(frame.payload.size() >> 8);
    bytes[2] = static_cast<char>(frame.payload.size());
    bytes[3] = static_cast<char>(frame.type);
    bytes[4] = static_cast<char>(frame.flags);
    bytes[8] = static_cast<char>(frame.stream);
    Write(bytes + frame.payload);
  }
  // Returns false at the end of the connection.
  bool Receive(Frame* frame) {
    std::string header;
    if (!Read(9, &header)) return false;
    const size_t size = Number(header, 0) >> 8;
    frame->type = static_cast<uint8_t>(header[3]);
    frame->flags = static_cast<uint8_t>(header[4]);
    return Read(size, &frame->payload);
  }
  // Returns whether the server has closed the connection; drops the bytes received.
  bool ended() {
    char bytes[4096];
    ssize_t count;
    while ((count = recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    return count == 0 || errno != EAGAIN;
  }
  std::map<uint16_t, uint32_t> Settings() {
    Frame frame;
    while (Receive(&frame)) {
      if (frame.type != kSettings || frame.flags != 0) continue;
      std::map<uint16_t, uint32_t> settings;
      for (size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
        const auto high = static_cast<uint8_t>(frame.payload[at]);
        const auto low = static_cast<uint8_t>(frame.payload[at + 1]);
        settings[static_cast<uint16_t>(high << 8 | low)] = Number(frame.payload, at + 2);
      }
      return settings;
    }
    ADD_FAILURE() << "no settings came";
    return {};
  }

 private:
  void Write(const std::string& bytes) {
    // After the server has ended the connection, closes it here too.
    (void)!send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  bool Read(size_t size, std::string* bytes) {
    bytes->resize(size);
    size_t at = 0;
    while (at < size) {
      const ssize_t count = recv(fd_.get(), bytes->data() + at, size - at, 0);
      if (count <= 0) return false;
      at += static_cast<size_t>(count);
    }
    return true;
  }

  UniqueFd fd_;
};

grpc::Status List(v1::DeviceService::Stub& stub, size_t metadata_bytes) {
  grpc::ClientContext context;
  if (metadata_bytes > 0) context.AddMetadata("x-much", std::string(metadata_bytes, 'm'));
  v1::ListDevicesResponse response;
  return stub.ListDevices(&context, {}, &response);
}

TEST(LimitsTest, OversizedMetadataIsRefused) {
  TestServer server;
  const auto channel = server.Connect();
  auto stub = v1::DeviceService::NewStub(channel);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(List(*stub, 64 << 10).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    // Where the headers reach gRPC 1.51 in several pieces, it ends the connection, not only the
    // call. The channel then opens another.
    grpc::Status next = List(*stub, 0);
    if (next.error_code() == grpc::StatusCode::UNAVAILABLE) next = List(*stub, 0);
    EXPECT_TRUE(next.ok()) << next.error_code() << " " << next.error_message();
    EXPECT_TRUE(List(*stub, 12 << 10).ok()) << "within the limit";
  }
  EXPECT_EQ(RawConnection(server).Settings()[kMaxHeaderListSize], 16u << 10);
}

TEST(LimitsTest, PingFloodEndsOnlyItsConnection) {
  TestServer server;
  const auto channel = server.Connect();
  auto stub = v1::DeviceService::NewStub(channel);
  EXPECT_TRUE(List(*stub, 0).ok());
  RawConnection flood(server);
  for (int i = 0; i < 20; ++i) flood.Send({.type = kPing, .payload = std::string(8, 'p')});
  Frame frame;
  bool closing = false;
  while (!closing && flood.Receive(&frame)) closing = frame.type == kGoaway;
  ASSERT_TRUE(closing);
  EXPECT_EQ(Number(frame.payload, 4), kEnhanceYourCalm);
  EXPECT_EQ(frame.payload.substr(8), "too_many_pings");
  EXPECT_TRUE(List(*stub, 0).ok());
}

TEST(LimitsTest, OccasionalPingIsAnswered) {
  TestServer server;
  RawConnection connection(server);
  connection.Send({.type = kPing, .payload = "12345678"});
  Frame frame;
  while (connection.Receive(&frame) && frame.type != kPing) {
  }
  EXPECT_EQ(frame.type, kPing);
  EXPECT_EQ(frame.flags, 1) << "an acknowledgement";
  EXPECT_EQ(frame.payload, "12345678");
}

// A literal header that enters no table.
std::string Literal(const std::string& name, const std::string& value) {
  std::string bytes(1, '\0');
  for (const std::string* text : {&name, &value}) bytes += static_cast<char>(text->size()) + *text;
  return bytes;
}

std::string RequestHeaders(const std::string& path) {
  return Literal(":method", "POST") + Literal(":scheme", "http") + Literal(":path", path) +
         Literal(":authority", "localhost") + Literal("te", "trailers") +
         Literal("content-type", "application/grpc");
}

// Sends harmless bytes until the connection ends.
bool EndsSoon(RawConnection& connection) {
  const SteadyTime end = Now() + absl::Seconds(100);
  while (Now() < end) {
    if (connection.ended()) return true;
    connection.Send({.type = kWindowUpdate, .payload = std::string("\0\0\0\1", 4)});
    absl::SleepFor(absl::Milliseconds(20));
  }
  return false;
}

TEST(LimitsTest, IncompleteMessageTimesOut) {
  FrontOptions options;
  options.message_time = absl::Milliseconds(1);
  TestServer server(options);
  const std::string headers = RequestHeaders("/stride.v1.DeviceService/ListDevices");
  for (const bool begun : {false, true}) {
    RawConnection connection(server);
    connection.Send({.type = kHeaders, .flags = kEndHeaders, .payload = headers, .stream = 1});
    if (begun) {
      connection.Send({.type = kData, .payload = std::string("\0\0\0\0\x64half", 9), .stream = 1});
    }
    EXPECT_TRUE(EndsSoon(connection)) << begun;
  }
  // Streams in service may be silent.
  auto stub = v1::ComputeService::NewStub(server.Connect());
  grpc::ClientContext context;
  auto stream = stub->Execute(&context);
  stream->WaitForInitialMetadata();
  RawConnection other(server);
  other.Send({.type = kHeaders, .flags = kEndHeaders, .payload = headers, .stream = 1});
  EXPECT_TRUE(EndsSoon(other));
  stream->WritesDone();
  v1::ExecuteResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(LimitsTest, WindowSizeIsConfigurable) {
  TestServer server({.stream_window_bytes = 200000});
  EXPECT_EQ(RawConnection(server).Settings()[kInitialWindowSize], 200000u);
  TestServer growing;
  EXPECT_NE(RawConnection(growing).Settings()[kInitialWindowSize], 200000u);
}

}  // namespace
}  // namespace stride::api
