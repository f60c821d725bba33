#include "server/api/stream_bytes.h"

#include <string>

#include "gtest/gtest.h"
#include "server/api/held_bytes.h"

namespace stride::api {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kRstStream = 3, kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1;
constexpr int64_t kStream = StreamBytes::kStreamBytes;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string bytes;
  for (int shift : {16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(stream >> shift);
  return bytes + payload;
}

// The first `count` bytes of a message, with its prefix.
std::string Part(uint32_t size, size_t count) {
  std::string bytes(1, '\0');
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift);
  return bytes + std::string(count, 'm');
}

class StreamBytesTest : public ::testing::Test {
 protected:
  StreamBytesTest() { Receive(std::string(24, 'p')); }

  void Receive(const std::string& bytes) {
    EXPECT_TRUE(
        streams_.Received(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), now_));
  }
  void Send(const std::string& bytes) {
    streams_.Sent(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  bool LateAfter(int seconds) const {
    return streams_.Late(now_ + std::chrono::seconds(seconds), std::chrono::seconds(60));
  }

  StreamBytes streams_;
  const StreamBytes::Time now_{std::chrono::hours(1)};
};

TEST_F(StreamBytesTest, UnansweredBytesAreHeldUntilTheStreamEnds) {
  Receive(Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, Part(100, 40)));
  EXPECT_EQ(streams_.held(), kStream + 45);
  Receive(Frame(kData, kEndStream, 1, std::string(60, 'm')));
  EXPECT_EQ(streams_.held(), kStream + 105);
  // A window update is no response, and neither is a response of another stream.
  Send(Frame(kWindowUpdate, 0, 1, "1234") + Frame(kHeaders, 4, 3, "h"));
  EXPECT_EQ(streams_.held(), kStream + 105);
  Send(Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, "answer") +
       Frame(kHeaders, 4 | kEndStream, 1, "h"));
  EXPECT_EQ(streams_.held(), 0);
}

TEST_F(StreamBytesTest, ResetOfEitherSideReleasesBytes) {
  for (uint32_t stream : {1, 3}) {
    Receive(Frame(kHeaders, 4, stream, "h") + Frame(kData, 0, stream, Part(100, 40)));
    EXPECT_GT(streams_.held(), 0);
    if (stream == 1) Receive(Frame(kRstStream, 0, stream, "1234"));
    if (stream == 3) Send(Frame(kRstStream, 0, stream, "1234"));
    EXPECT_EQ(streams_.held(), 0);
    // gRPC drops bytes that were in flight.
    Receive(Frame(kData, 0, stream, std::string(60, 'm')));
    EXPECT_EQ(streams_.held(), 0);
  }
}

TEST_F(StreamBytesTest, UnfinishedMessageOfServedStreamIsHeld) {
  Receive(Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, Part(10, 10) + Part(100, 40)));
  Send(Frame(kHeaders, 4, 1, "h"));
  EXPECT_EQ(streams_.held(), 45);
  Receive(Frame(kData, 0, 1, std::string(60, 'm') + Part(0, 0) + Part(5, 5)));
  EXPECT_EQ(streams_.held(), 0);
  Receive(Frame(kData, 0, 1, Part(100, 1)));
  EXPECT_EQ(streams_.held(), 6);
}

TEST_F(StreamBytesTest, BytesAreCountedInAnySplit) {
  const std::string bytes = Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, Part(300, 200)) +
                            Frame(kHeaders, 4, 3, "h") +
                            Frame(kData, 0, 1, std::string(100, 'm') + Part(7, 3)) +
                            Frame(kData, 0, 3, std::string(3, '\0'));
  const std::string answers = Frame(4, 0, 0, "") + Frame(kHeaders, 4, 1, "h");
  for (char byte : bytes) Receive(std::string(1, byte));
  EXPECT_EQ(streams_.held(), 2 * kStream + 305 + 8 + 3);
  for (char byte : answers) Send(std::string(1, byte));
  EXPECT_EQ(streams_.held(), kStream + 8 + 3);
}

TEST_F(StreamBytesTest, FirstMessageTimesOut) {
  Receive(Frame(kHeaders, 4, 1, "h"));
  EXPECT_FALSE(LateAfter(60));
  EXPECT_TRUE(LateAfter(61)) << "no message at all";
  Receive(Frame(kData, 0, 1, Part(1 << 20, 40)));
  EXPECT_FALSE(LateAfter(60 + 16));
  EXPECT_TRUE(LateAfter(60 + 17)) << "a part, and a second for each 64 KiB of it";
  Receive(Frame(kData, 0, 1, std::string((1 << 20) - 40, 'm') + Part(100, 1)));
  EXPECT_FALSE(LateAfter(1000)) << "it is whole; the next one may wait for the daemon";
  Receive(Frame(kHeaders, 4, 3, "h") + Frame(kData, 0, 3, Part(0xffffffff, 1)));
  EXPECT_TRUE(LateAfter(60 + 65)) << "a length that lies gives no more time than the largest";
  Receive(Frame(kRstStream, 0, 3, "1234"));
  EXPECT_FALSE(LateAfter(1000));
}

TEST_F(StreamBytesTest, ServedStreamMayBeSilent) {
  Receive(Frame(kHeaders, 4, 1, "h"));
  Send(Frame(kHeaders, 4, 1, "h"));
  EXPECT_FALSE(LateAfter(100000));
}

TEST_F(StreamBytesTest, TooManyOpenStreamsAreRefused) {
  std::string bytes;
  for (uint32_t i = 0; i <= StreamBytes::kMaxStreams; ++i)
    bytes += Frame(kHeaders, 4, 2 * i + 1, "h");
  EXPECT_FALSE(
      streams_.Received(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), now_));
}

constexpr int64_t kMiB = 1 << 20;

TEST(HeldBytesTest, OnePeerIsLimitedToHalf) {
  HeldBytes held(64 * kMiB);
  int64_t had = 0;
  while (held.Change("a", had, had + kMiB)) had += kMiB;
  EXPECT_EQ(had, 32 * kMiB);
  // The connection ends and releases everything.
  held.Change("a", had + kMiB, 0);
  EXPECT_EQ(held.total(), 0);
}

TEST(HeldBytesTest, ConnectionsOfOnePeerShareItsLimit) {
  HeldBytes held(64 * kMiB);
  int64_t most = 0;
  for (int round = 1; round < 20; ++round) {
    for (int i = 0; i < 16; ++i) {
      const int64_t before = (round - 1) * (kMiB / 2);
      if (held.Change("a", before, round * (kMiB / 2))) continue;
      most = held.total();
      EXPECT_LE(most, 34 * kMiB);
      return;
    }
  }
  FAIL() << "no connection ended";
}

TEST(HeldBytesTest, OtherPeersAreServedWhileOneIsAtItsLimit) {
  HeldBytes held(64 * kMiB);
  for (int i = 0; i < 16; ++i) held.Change("a", 0, 2 * kMiB);
  EXPECT_TRUE(held.Change("b", 0, 16 * kMiB)) << "another peer";
  held.Change("b", 16 * kMiB, 0);
  EXPECT_TRUE(held.Change("a", 0, kMiB)) << "one of the same peer that has less than the others";
  EXPECT_TRUE(held.Change("a", 0, HeldBytes::kAlways)) << "small messages always";
  EXPECT_FALSE(held.Change("a", 2 * kMiB, 4 * kMiB));
}

}  // namespace
}  // namespace stride::api
