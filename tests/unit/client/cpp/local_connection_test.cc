#include "client/cpp/src/local_connection.h"

#include "stride/v1/compute_service.pb.h"
#include "tests/unit/client/cpp/local_peer.h"

namespace stride::internal {
namespace {

using Outcome = LocalConnection::Outcome;

LocalDeadline Now() { return std::chrono::steady_clock::now(); }

class LocalConnectionTest : public ::testing::Test {
 protected:
  LocalConnectionTest() { std::tie(client_, peer_) = ConnectedPair(); }

  void ExpectFrame(uint32_t kind, std::string_view bytes) {
    LocalMessage message;
    ASSERT_EQ(client_->Read(&message, /*watch=*/true), Outcome::kDone);
    EXPECT_EQ(static_cast<uint32_t>(message.kind), kind);
    EXPECT_TRUE(message.bytes == bytes) << message.bytes.size() << " bytes";
  }
  Outcome Read(LocalDeadline deadline = {}) {
    LocalMessage message;
    return client_->Read(&message, /*watch=*/false, deadline);
  }

  std::unique_ptr<LocalConnection> client_;
  std::unique_ptr<LocalPeer> peer_;
};

v1::RunRequest RequestOf(size_t bytes) {
  v1::RunRequest request;
  request.set_session(std::string(bytes, 's'));
  return request;
}

TEST_F(LocalConnectionTest, WritesFramesOfTheContract) {
  const auto request = RequestOf(3);
  ASSERT_EQ(client_->Write(v1::LOCAL_FRAME_RUN, request, std::chrono::nanoseconds(0x0102)),
            Outcome::kDone);
  std::string bytes(21, '\0');
  ASSERT_TRUE(peer_->ReceiveAll(bytes));
  EXPECT_EQ(bytes, std::string("\5\0\0\0\1\0\0\0\2\1\0\0\0\0\0\0", 16) + "\n\3sss");
}

TEST_F(LocalConnectionTest, ShorterFrameFollowsLongerOne) {
  for (const size_t size : {size_t{5000}, size_t{10}, size_t{3} << 20, size_t{1}}) {
    const auto request = RequestOf(size);
    std::thread writer(
        [&] { EXPECT_EQ(client_->Write(v1::LOCAL_FRAME_RUN, request), Outcome::kDone); });
    PeerFrame frame;
    EXPECT_TRUE(peer_->Receive(&frame));
    writer.join();
    EXPECT_TRUE(frame.bytes == request.SerializeAsString()) << size;
    EXPECT_EQ(frame.timeout_ns, 0u);
  }
}

TEST_F(LocalConnectionTest, FramesMayArriveInPieces) {
  const std::string frame = Frame(7, "a message") + Frame(8, "");
  for (size_t split = 1; split < frame.size(); ++split) {
    std::thread sender([&] {
      peer_->Send(std::string_view(frame).substr(0, split));
      peer_->AwaitThatAllIsRead();
      peer_->Send(std::string_view(frame).substr(split));
    });
    ExpectFrame(7, "a message");
    ExpectFrame(8, "");
    sender.join();
  }
}

TEST_F(LocalConnectionTest, SeveralFramesMayArriveAtOnce) {
  peer_->Send(Frame(1, "one") + Frame(2, "") + Frame(3, "three") + Frame(4, "four").substr(0, 18));
  ExpectFrame(1, "one");
  ExpectFrame(2, "");
  ExpectFrame(3, "three");
  peer_->Send("ur");
  ExpectFrame(4, "four");
}

TEST_F(LocalConnectionTest, FramesOfAllSizesMayFollowEachOther) {
  constexpr size_t kBuffer = 64 << 10;
  for (const size_t size : {kBuffer - 17, kBuffer - 16, kBuffer - 15, kBuffer, kBuffer + 1,
                            3 * kBuffer, LocalConnection::kMaxMessageBytes}) {
    std::string bytes(size, 'x');
    bytes.front() = 'a';
    bytes.back() = 'z';
    std::thread sender([&] {
      peer_->Send(Frame(1, "before") + Frame(2, bytes) + Frame(3, bytes) + Frame(4, "after"));
    });
    ExpectFrame(1, "before");
    ExpectFrame(2, bytes);
    ExpectFrame(3, bytes);
    ExpectFrame(4, "after");
    sender.join();
  }
}

TEST_F(LocalConnectionTest, OversizedFrameIsRefused) {
  std::string header = Frame(1, "");
  const uint32_t size = LocalConnection::kMaxMessageBytes + 1;
  std::memcpy(header.data(), &size, sizeof(size));
  peer_->Send(header);
  EXPECT_EQ(Read(), Outcome::kEnded);
}

TEST_F(LocalConnectionTest, ConnectionMayEndAnywhere) {
  const std::string frame = Frame(7, "a message");
  for (size_t split = 0; split < frame.size(); ++split) {
    std::tie(client_, peer_) = ConnectedPair();
    peer_->Send(std::string_view(frame).substr(0, split));
    peer_->End();
    EXPECT_EQ(Read(), Outcome::kEnded) << split;
  }
}

TEST_F(LocalConnectionTest, FramesBeforeTheEndAreRead) {
  peer_->Send(Frame(7, "last"));
  peer_.reset();
  ExpectFrame(7, "last");
  EXPECT_EQ(Read(), Outcome::kEnded);
  EXPECT_EQ(client_->Write(v1::LOCAL_FRAME_RUN, RequestOf(1)), Outcome::kEnded);
}

TEST_F(LocalConnectionTest, ReadsEndAtDeadline) {
  EXPECT_EQ(Read(Now()), Outcome::kTimedOut);
  peer_->Send(Frame(7, "half").substr(0, 18));
  EXPECT_EQ(Read(Now()), Outcome::kTimedOut);
}

TEST_F(LocalConnectionTest, WritesEndAtDeadline) {
  EXPECT_EQ(client_->Write(v1::LOCAL_FRAME_RUN, RequestOf(8 << 20), {}, Now()), Outcome::kTimedOut);
}

TEST_F(LocalConnectionTest, CancelEndsReadsAndWrites) {
  std::thread reader([&] { EXPECT_EQ(Read(), Outcome::kEnded); });
  std::thread writer(
      [&] { EXPECT_EQ(client_->Write(v1::LOCAL_FRAME_RUN, RequestOf(8 << 20)), Outcome::kEnded); });
  // A part of it has arrived, so the write is in progress.
  std::string first(1, '\0');
  ASSERT_TRUE(peer_->ReceiveAll(first));
  client_->Cancel();
  reader.join();
  writer.join();
}

TEST_F(LocalConnectionTest, IsQuietWithoutIncomingBytes) {
  EXPECT_TRUE(client_->Quiet());
  peer_->Send(Frame(1, "one") + Frame(2, "two"));
  EXPECT_FALSE(client_->Quiet());
  ExpectFrame(1, "one");
  EXPECT_FALSE(client_->Quiet());
  ExpectFrame(2, "two");
  EXPECT_TRUE(client_->Quiet());
  peer_->End();
  EXPECT_FALSE(client_->Quiet());
}

}  // namespace
}  // namespace stride::internal
