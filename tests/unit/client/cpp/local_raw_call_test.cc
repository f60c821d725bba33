#include "client/cpp/src/local_raw_call.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/slice.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/unit/client/cpp/local_peer.h"

namespace stride::internal {
namespace {

using Method = RawCall::Method;

grpc::ByteBuffer Bytes(const std::vector<std::string>& pieces) {
  std::vector<grpc::Slice> slices;
  for (const std::string& piece : pieces) slices.emplace_back(piece);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// `serve_` serves each connection, which ends when it returns.
class LocalRawCallTest : public ::testing::Test {
 protected:
  ~LocalRawCallTest() override {
    calls_.Close();
    for (auto& server : servers_) server.join();
  }
  std::unique_ptr<RawCall> Begin(Method method, const CallOptions& options = {}) {
    return BeginRawCall(&calls_, channel_, method, options, {});
  }

  std::function<void(LocalPeer& peer)> serve_;
  int num_asked_ = 0;
  std::vector<std::thread> servers_;
  // No server listens: a call by gRPC is UNAVAILABLE.
  std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel("unix:/nonexistent/stride", grpc::InsecureChannelCredentials());
  LocalCalls calls_{[this](const CallOptions&) -> Result<std::unique_ptr<LocalConnection>> {
    ++num_asked_;
    if (!serve_) return Error{.code = Code::kUnimplemented};
    auto [client, peer] = ConnectedPair();
    servers_.emplace_back(
        [serve = serve_, peer = std::shared_ptr(std::move(peer))] { serve(*peer); });
    return std::move(client);
  }};
};

void ExpectUpload(LocalPeer& peer, const std::vector<std::string>& messages) {
  PeerFrame frame;
  for (const std::string& message : messages) {
    ASSERT_TRUE(peer.Receive(&frame));
    EXPECT_EQ(frame.kind, static_cast<uint32_t>(v1::LOCAL_FRAME_PUT));
    EXPECT_TRUE(frame.bytes == message);
  }
  ASSERT_TRUE(peer.Receive(&frame));
  EXPECT_EQ(frame.kind, static_cast<uint32_t>(v1::LOCAL_FRAME_PUT_END));
}

TEST_F(LocalRawCallTest, UploadIsFramesAndAResponse) {
  const std::string large(1 << 20, 'x');
  serve_ = [&](LocalPeer& peer) {
    for (int i = 0; i < 2; ++i) {
      ExpectUpload(peer, {"header", "ab" + large + "cd"});
      peer.Send(Frame(v1::LOCAL_FRAME_PUT, "made"));
    }
  };
  for (int i = 0; i < 2; ++i) {
    auto call = Begin(Method::kPutArray);
    EXPECT_TRUE(call->Write(Bytes({"head", "er"})));
    EXPECT_TRUE(call->Write(Bytes({"ab", large, "cd"})));
    EXPECT_TRUE(call->WritesDone());
    grpc::ByteBuffer answer;
    ASSERT_TRUE(call->Read(&answer));
    EXPECT_EQ(TextOf(answer), "made");
    EXPECT_TRUE(call->Finish().ok());
  }
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(LocalRawCallTest, DownloadIsFramesUntilItsStatus) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(peer.Receive(&frame));
      EXPECT_EQ(frame.kind, static_cast<uint32_t>(v1::LOCAL_FRAME_FETCH));
      EXPECT_EQ(frame.bytes, "which");
      peer.Send(Frame(v1::LOCAL_FRAME_FETCH, "one") + Frame(v1::LOCAL_FRAME_FETCH, "two") +
                Frame(v1::LOCAL_FRAME_STATUS, ""));
    }
  };
  for (int i = 0; i < 2; ++i) {
    auto call = Begin(Method::kFetchArray);
    EXPECT_TRUE(call->Write(Bytes({"which"})));
    EXPECT_TRUE(call->WritesDone());
    std::vector<std::string> messages;
    for (grpc::ByteBuffer message; call->Read(&message);) messages.push_back(TextOf(message));
    EXPECT_EQ(messages, (std::vector<std::string>{"one", "two"}));
    EXPECT_TRUE(call->Finish().ok());
  }
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(LocalRawCallTest, RefusalIsReturnedByFinishAndKeepsConnection) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    peer.Send(StatusFrame(8, "QUOTA"));
    while (frame.kind != v1::LOCAL_FRAME_PUT_END) ASSERT_TRUE(peer.Receive(&frame));
    ExpectUpload(peer, {"again"});
    peer.Send(Frame(v1::LOCAL_FRAME_PUT, "made"));
  };
  {
    auto call = Begin(Method::kPutArray);
    EXPECT_TRUE(call->Write(Bytes({"header"})));
    EXPECT_TRUE(call->Write(Bytes({"data"})));
    EXPECT_TRUE(call->WritesDone());
    grpc::ByteBuffer answer;
    EXPECT_FALSE(call->Read(&answer));
    const auto ended = call->Finish();
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().code, Code::kResourceExhausted);
    EXPECT_EQ(ended.error().reason, "QUOTA");
  }
  auto call = Begin(Method::kPutArray);
  EXPECT_TRUE(call->Write(Bytes({"again"})) && call->WritesDone());
  grpc::ByteBuffer answer;
  EXPECT_TRUE(call->Read(&answer));
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(LocalRawCallTest, BrokenCallIsUnavailableAndNotReused) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    EXPECT_TRUE(peer.Receive(&frame));
  };
  for (int i = 0; i < 2; ++i) {
    auto call = Begin(Method::kFetchArray);
    EXPECT_TRUE(call->Write(Bytes({"which"})));
    grpc::ByteBuffer message;
    EXPECT_FALSE(call->Read(&message));
    EXPECT_EQ(call->Finish().error().code, Code::kUnavailable);
  }
  EXPECT_EQ(num_asked_, 2);
}

TEST_F(LocalRawCallTest, AbandonedCallIsNotReused) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    EXPECT_TRUE(peer.Receive(&frame));
    peer.Send(Frame(v1::LOCAL_FRAME_FETCH, "one"));
    EXPECT_FALSE(peer.Receive(&frame));
  };
  for (int i = 0; i < 2; ++i) {
    auto call = Begin(Method::kFetchArray);
    EXPECT_TRUE(call->Write(Bytes({"which"})));
    grpc::ByteBuffer message;
    EXPECT_TRUE(call->Read(&message));
  }
  EXPECT_EQ(num_asked_, 2);
}

TEST_F(LocalRawCallTest, DeadlineOrCancelEndsTheCall) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    EXPECT_GT(frame.timeout_ns, 0u);
    EXPECT_FALSE(peer.Receive(&frame));
  };
  grpc::ByteBuffer message;
  {
    auto call = Begin(Method::kFetchArray, {.timeout = std::chrono::seconds(2)});
    EXPECT_TRUE(call->Write(Bytes({"which"})));
    EXPECT_FALSE(call->Read(&message));
    EXPECT_EQ(call->Finish().error().code, Code::kDeadlineExceeded);
  }
  Cancellation cancellation;
  auto call = Begin(Method::kFetchArray,
                    {.timeout = std::chrono::seconds(60), .cancellation = cancellation});
  EXPECT_TRUE(call->Write(Bytes({"which"})));
  std::thread canceller([&] { cancellation.Cancel(); });
  EXPECT_FALSE(call->Read(&message));
  EXPECT_EQ(call->Finish().error().code, Code::kCancelled);
  canceller.join();
}

TEST_F(LocalRawCallTest, CallWithoutConnectionUsesGrpc) {
  for (LocalCalls* calls : {&calls_, static_cast<LocalCalls*>(nullptr)}) {
    auto call = BeginRawCall(calls, channel_, Method::kFetchArray, {}, {});
    (void)call->Write(Bytes({"which"}));
    grpc::ByteBuffer message;
    EXPECT_FALSE(call->Read(&message));
    EXPECT_EQ(call->Finish().error().code, Code::kUnavailable);
  }
  EXPECT_EQ(num_asked_, 1);
}

}  // namespace
}  // namespace stride::internal
