#include "server/api/frame_socket.h"

#include <grpcpp/support/slice.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/api/status.h"
#include "stride/v1/compute_service.pb.h"
#include "tests/support/local_client.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::DetailsOf;
using stride::testing::LocalClient;

class FrameSocketTest : public ::testing::Test {
 protected:
  FrameSocketTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = std::make_unique<FrameSocket>(UniqueFd(ends[0]));
    client_ = std::make_unique<LocalClient>(UniqueFd(ends[1]));
  }
  std::string Next() {
    auto frame = socket_->Read();
    return frame.ok() ? std::string(frame->message) : frame.status().ToString();
  }

  std::unique_ptr<FrameSocket> socket_;
  std::unique_ptr<LocalClient> client_;
};

TEST_F(FrameSocketTest, FrameContainsKindTimeoutAndMessage) {
  client_->SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_RUN, "hello", 2'000'000));
  auto frame = socket_->Read();
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->kind, v1::LOCAL_FRAME_RUN);
  EXPECT_EQ(frame->timeout, absl::Milliseconds(2));
  EXPECT_EQ(frame->message, "hello");
  // The largest timeout is far in the future, not in the past.
  client_->SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_RUN, "", UINT64_MAX));
  EXPECT_GT(socket_->Read()->timeout, absl::Hours(24 * 365 * 200));
}

TEST_F(FrameSocketTest, FramesAreReadFromAnySplit) {
  const std::string one = LocalClient::FrameOf(1, "one"), none = LocalClient::FrameOf(2, "");
  client_->SendBytes(one + none + LocalClient::FrameOf(3, "three"));
  EXPECT_EQ(Next(), "one");
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(Next(), "three");
  std::thread sender([&] {
    for (char byte : one + one) client_->SendBytes({&byte, 1});
  });
  EXPECT_EQ(Next(), "one");
  EXPECT_EQ(Next(), "one");
  sender.join();
}

TEST_F(FrameSocketTest, ReadsLargeMessagesBetweenSmallOnes) {
  std::string large(3 << 20, 'x');
  for (size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>(i);
  std::thread sender([&] {
    for (int i = 0; i < 3; ++i) {
      client_->SendBytes(LocalClient::FrameOf(1, "small") + LocalClient::FrameOf(1, large) +
                         LocalClient::FrameOf(1, "after"));
    }
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Next(), "small");
    EXPECT_TRUE(Next() == large);
    EXPECT_EQ(Next(), "after");
  }
  sender.join();
}

TEST_F(FrameSocketTest, OversizedFrameIsRefusedAtItsHeader) {
  std::string frame = LocalClient::FrameOf(1, "");
  const uint32_t size = FrameSocket::kMaxMessageBytes + 1;
  std::memcpy(frame.data(), &size, sizeof(size));
  client_->SendBytes(frame);
  auto refused = socket_->Read();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(ToRpcStatus(refused.status())).field(), "size");
}

TEST_F(FrameSocketTest, EndOfStreamBetweenAndWithinFrames) {
  client_->SendBytes(LocalClient::FrameOf(1, "whole") +
                     LocalClient::FrameOf(1, "part").substr(0, 18));
  EXPECT_FALSE(socket_->hung_up());
  client_->Close();
  EXPECT_TRUE(socket_->hung_up());
  EXPECT_EQ(Next(), "whole");
  EXPECT_TRUE(absl::IsOutOfRange(socket_->Read().status()));
  EXPECT_FALSE(socket_->Write(v1::LOCAL_FRAME_RUN, v1::RunResponse()));
}

TEST_F(FrameSocketTest, LargeWritesArriveWhole) {
  v1::RunResponse response;
  response.add_results()->mutable_inline_array()->set_data(std::string(4 << 20, 'y'));
  std::thread writer([&] {
    EXPECT_TRUE(socket_->Write(v1::LOCAL_FRAME_RUN, response));
    EXPECT_TRUE(socket_->Write(v1::LOCAL_FRAME_STATUS, google::rpc::Status()));
  });
  const auto answer = client_->Receive();
  EXPECT_EQ(answer.kind, v1::LOCAL_FRAME_RUN);
  EXPECT_EQ(answer.message, response.SerializeAsString());
  EXPECT_EQ(client_->Receive().status().code(), 0);
  writer.join();
}

TEST_F(FrameSocketTest, SlicesFormOneMessage) {
  const std::string large(1 << 20, 'z');
  const grpc::Slice slices[] = {grpc::Slice("ab"), grpc::Slice("cd"), grpc::Slice(large),
                                grpc::Slice("ef")};
  std::thread writer([&] {
    EXPECT_TRUE(socket_->Write(v1::LOCAL_FRAME_FETCH, grpc::ByteBuffer(slices, 4)));
    EXPECT_TRUE(socket_->Write(v1::LOCAL_FRAME_FETCH, grpc::ByteBuffer(slices, 2)));
  });
  EXPECT_TRUE(client_->Receive().message == "abcd" + large + "ef");
  EXPECT_EQ(client_->Receive().message, "abcd");
  writer.join();
}

TEST_F(FrameSocketTest, ShrinkKeepsUnreadBytes) {
  const std::string large(1 << 20, 'x');
  std::thread sender([&] {
    client_->SendBytes(LocalClient::FrameOf(1, large) + LocalClient::FrameOf(1, "next"));
  });
  EXPECT_TRUE(Next() == large);
  socket_->Shrink();
  EXPECT_EQ(Next(), "next");
  socket_->Shrink();
  sender.join();
  client_->SendBytes(LocalClient::FrameOf(1, "last"));
  EXPECT_EQ(Next(), "last");
}

TEST_F(FrameSocketTest, PartialFrameTimesOut) {
  for (const size_t part : {size_t{3}, size_t{20}}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    FrameSocket socket(UniqueFd(ends[0]), absl::Milliseconds(20), absl::Milliseconds(50));
    LocalClient client{UniqueFd(ends[1])};
    client.SendBytes(LocalClient::FrameOf(1, "two parts").substr(0, part));
    EXPECT_TRUE(absl::IsOutOfRange(socket.Read().status()));
  }
}

TEST_F(FrameSocketTest, FrameWithoutRoomIsDropped) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ByteBudget budget(1 << 20);
  FrameSocket socket(UniqueFd(ends[0]), absl::Minutes(1), absl::Minutes(1),
                     ByteBudget::Charge(&budget, {"a"}));
  LocalClient client{UniqueFd(ends[1])};
  std::thread sender([&] {
    for (const size_t size : {size_t{5} << 20, size_t{400} << 10, size_t{5} << 20, size_t{3}})
      client.SendBytes(LocalClient::FrameOf(1, std::string(size, 'm')));
  });
  EXPECT_TRUE(absl::IsResourceExhausted(socket.Read().status()));
  EXPECT_EQ(socket.last_kind(), v1::LOCAL_FRAME_RUN);
  EXPECT_EQ(socket.Read()->message.size(), 400 << 10);
  EXPECT_GE(budget.used(), 400 << 10);
  v1::LocalFrame kind = v1::LOCAL_FRAME_UNSPECIFIED;
  EXPECT_TRUE(socket.Drop(&kind));
  EXPECT_EQ(kind, v1::LOCAL_FRAME_RUN);
  EXPECT_EQ(socket.Read()->message, "mmm");
  socket.Shrink();
  EXPECT_EQ(budget.used(), 0);
  sender.join();
}

TEST_F(FrameSocketTest, FirstFrameTimesOut) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameSocket socket(UniqueFd(ends[0]), absl::Milliseconds(20));
  LocalClient client{UniqueFd(ends[1])};
  // Within a call there is no such limit.
  std::thread slow([&] {
    absl::SleepFor(absl::Milliseconds(100));
    client.SendBytes(LocalClient::FrameOf(1, "late"));
  });
  auto frame = socket.Read();
  slow.join();
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->message, "late");
  // The rest of a frame that has begun to arrive has none either.
  const std::string two = LocalClient::FrameOf(1, "two parts");
  client.SendBytes(two.substr(0, 3));
  std::thread rest([&] {
    absl::SleepFor(absl::Milliseconds(100));
    client.SendBytes(two.substr(3));
  });
  frame = socket.Read(/*first=*/true);
  rest.join();
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->message, "two parts");
  EXPECT_TRUE(absl::IsOutOfRange(socket.Read(/*first=*/true).status()));
  // The client's next frame is not lost: the send fails.
  EXPECT_LT(send(client.fd(), "x", 1, MSG_NOSIGNAL), 0);
}

TEST_F(FrameSocketTest, SentFramesCanBeReadAfterStopReading) {
  client_->SendBytes(LocalClient::FrameOf(1, "before"));
  socket_->StopReading();
  EXPECT_EQ(Next(), "before");
  EXPECT_TRUE(absl::IsOutOfRange(socket_->Read().status()));
}

}  // namespace
}  // namespace stride::api
