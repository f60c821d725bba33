#include "client/cpp/src/local_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <vector>

#include "stride/v1/region_service.pb.h"

#include "tests/support/await.h"
#include "tests/unit/client/cpp/local_peer.h"

namespace stride::internal {
namespace {

using Answer = std::optional<Result<v1::RunResponse>>;

// Serves a connection as the daemon; it ends when this returns.
using Serve = std::function<void(LocalPeer& peer)>;

std::string RunFrame() {
  v1::RunResponse response;
  response.mutable_timeline()->set_device("devices/7");
  return Frame(v1::LOCAL_FRAME_RUN, response.SerializeAsString());
}

void AnswerAll(LocalPeer& peer) {
  for (PeerFrame frame; peer.Receive(&frame);) peer.Send(RunFrame());
}

class LocalCallsTest : public ::testing::Test {
 protected:
  ~LocalCallsTest() override { EndServers(); }

  // Destroyed before the members that they use.
  void EndServers() {
    calls_.Close();
    for (auto& server : servers_) server.join();
    servers_.clear();
  }

  Result<std::unique_ptr<LocalConnection>> Open(const CallOptions&) {
    std::lock_guard lock(mutex_);
    ++num_asked_;
    if (refusal_ != Code::kOk) return Error{.code = refusal_};
    auto [client, peer] = ConnectedPair();
    servers_.emplace_back(
        [serve = serve_, peer = std::shared_ptr(std::move(peer))] { serve(*peer); });
    return std::move(client);
  }
  Answer Run(const CallOptions& options = {}, LocalDeadline deadline = {}) {
    v1::RunRequest request;
    request.set_session("sessions/1");
    return calls_.Run(request, options, deadline);
  }
  void ExpectAnswer() {
    const Answer answer = Run();
    ASSERT_TRUE(answer);
    ASSERT_TRUE(answer->ok()) << answer->error().ToString();
    EXPECT_EQ((*answer)->timeline().device(), "devices/7");
  }
  static Code CodeOf(const Answer& answer) {
    EXPECT_TRUE(answer && !answer->ok());
    return answer && !answer->ok() ? answer->error().code : Code::kOk;
  }

  std::mutex mutex_;
  Code refusal_ = Code::kOk;
  Serve serve_ = AnswerAll;
  int num_asked_ = 0;
  std::vector<std::thread> servers_;
  LocalCalls calls_{[this](const CallOptions& options) { return Open(options); }};
};

TEST_F(LocalCallsTest, OneConnectionServesConsecutiveCalls) {
  for (int i = 0; i < 3; ++i) ExpectAnswer();
  EXPECT_EQ(num_asked_, 1);
}

// Answers the first call with a region, whose memory and pin are both the writing end of a pipe,
// and expects that the client has both and no more.
void SendRegion(LocalPeer& peer, int num_descriptors) {
  PeerFrame frame;
  if (!peer.Receive(&frame)) return;
  EXPECT_EQ(frame.kind, static_cast<uint32_t>(v1::LOCAL_FRAME_CREATE_REGION));
  v1::CreateRegionResponse response;
  response.mutable_region()->set_name("sessions/1/regions/1");
  const std::string answer = Frame(v1::LOCAL_FRAME_CREATE_REGION, response.SerializeAsString());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor in(ends[0]);
  {
    const Descriptor out(ends[1]);
    peer.SendWith(answer, std::vector<int>(num_descriptors, out.get()));
  }
  char byte = 0;
  // The end comes once the client has closed its copies.
  EXPECT_EQ(read(in.get(), &byte, 1), num_descriptors == 2 ? 1 : 0);
}

TEST_F(LocalCallsTest, MemoryComesWithItsAnswer) {
  serve_ = [](LocalPeer& peer) {
    SendRegion(peer, 2);
    AnswerAll(peer);
  };
  {
    v1::CreateRegionResponse response;
    auto memory = calls_.CallForMemory(v1::LOCAL_FRAME_CREATE_REGION, v1::CreateRegionRequest(), {},
                                       {}, &response);
    ASSERT_TRUE(memory.ok()) << memory.error().ToString();
    EXPECT_EQ(response.region().name(), "sessions/1/regions/1");
    EXPECT_EQ(write(memory->pin.get(), "x", 1), 1);
  }
  ExpectAnswer();
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(LocalCallsTest, AnswerWithoutItsMemoryIsAnError) {
  serve_ = [](LocalPeer& peer) { SendRegion(peer, 1); };
  v1::CreateRegionResponse response;
  auto memory = calls_.CallForMemory(v1::LOCAL_FRAME_CREATE_REGION, v1::CreateRegionRequest(), {},
                                     {}, &response);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, Code::kInternal);
}

TEST_F(LocalCallsTest, MemoryNeedsAConnection) {
  v1::CreateRegionResponse response;
  refusal_ = Code::kResourceExhausted;
  auto refused = calls_.CallForMemory(v1::LOCAL_FRAME_CREATE_REGION, v1::CreateRegionRequest(), {},
                                      {}, &response);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  // Without calls a connection is opened for the memory alone.
  refusal_ = Code::kOk;
  serve_ = [](LocalPeer& peer) { SendRegion(peer, 1); };
  LocalCalls memory_only([this](const CallOptions& options) { return Open(options); }, false);
  num_asked_ = 0;
  EXPECT_FALSE(memory_only.Run({}, {}, {}).has_value());
  EXPECT_EQ(num_asked_, 0);
  auto memory = memory_only.CallForMemory(v1::LOCAL_FRAME_CREATE_REGION, v1::CreateRegionRequest(),
                                          {}, {}, &response);
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(LocalCallsTest, StatusKeepsTheConnection) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    peer.Send(StatusFrame(static_cast<int>(Code::kNotFound), "SESSION_NOT_FOUND"));
    AnswerAll(peer);
  };
  const Answer answer = Run();
  EXPECT_EQ(CodeOf(answer), Code::kNotFound);
  EXPECT_EQ(answer->error().reason, "SESSION_NOT_FOUND");
  ExpectAnswer();
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(LocalCallsTest, ResponseOfWrongKindEndsTheConnection) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    peer.Send(Frame(v1::LOCAL_FRAME_EXECUTE, ""));
    EXPECT_FALSE(peer.Receive(&frame));
  };
  EXPECT_EQ(CodeOf(Run()), Code::kInternal);
  serve_ = AnswerAll;
  ExpectAnswer();
}

TEST_F(LocalCallsTest, RequestAndDeadlineAreSent) {
  std::promise<PeerFrame> first, second;
  serve_ = [&](LocalPeer& peer) {
    for (auto* promise : {&first, &second}) {
      PeerFrame frame;
      ASSERT_TRUE(peer.Receive(&frame));
      peer.Send(RunFrame());
      promise->set_value(frame);
    }
  };
  ASSERT_TRUE(Run({}, std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  const PeerFrame limited = first.get_future().get();
  EXPECT_EQ(limited.kind, static_cast<uint32_t>(v1::LOCAL_FRAME_RUN));
  EXPECT_GT(limited.timeout_ns, 0u);
  EXPECT_LE(limited.timeout_ns, 60'000'000'000u);
  v1::RunRequest request;
  EXPECT_TRUE(request.ParseFromString(limited.bytes));
  EXPECT_EQ(request.session(), "sessions/1");
  ASSERT_TRUE(Run());
  EXPECT_EQ(second.get_future().get().timeout_ns, 0u);
  EndServers();
}

TEST_F(LocalCallsTest, MissedDeadlineEndsCallAndConnection) {
  std::promise<void> ended;
  serve_ = [&](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    EXPECT_FALSE(peer.Receive(&frame));
    ended.set_value();
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  EXPECT_EQ(CodeOf(Run({}, deadline)), Code::kDeadlineExceeded);
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  ended.get_future().wait();
  serve_ = AnswerAll;
  ExpectAnswer();
  EndServers();
}

TEST_F(LocalCallsTest, CancellationEndsCallAndConnection) {
  const Cancellation cancellation;
  serve_ = [&](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    cancellation.Cancel();
    EXPECT_FALSE(peer.Receive(&frame));
  };
  EXPECT_EQ(CodeOf(Run({.cancellation = cancellation})), Code::kCancelled);
  serve_ = AnswerAll;
  ExpectAnswer();
  // Cancelled already: the daemon receives nothing, and the idle connection closes.
  EXPECT_EQ(CodeOf(Run({.cancellation = cancellation})), Code::kCancelled);
  ExpectAnswer();
  EndServers();
}

TEST_F(LocalCallsTest, EndAfterTheRequestIsUnavailable) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
  };
  EXPECT_EQ(CodeOf(Run()), Code::kUnavailable);
  serve_ = AnswerAll;
  ExpectAnswer();
}

TEST_F(LocalCallsTest, UnsentRequestMayUseGrpc) {
  std::promise<void> stopped;
  serve_ = [&](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    // Before the response, so that the client cannot be faster.
    peer.StopReceiving();
    peer.Send(RunFrame());
    stopped.get_future().wait();
  };
  ExpectAnswer();
  EXPECT_FALSE(Run());
  stopped.set_value();
  EndServers();
}

TEST_F(LocalCallsTest, ConnectionEndedWhileIdleIsNotUsed) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    peer.Send(RunFrame());
  };
  ExpectAnswer();
  servers_.front().join();  // and the connection's other end with it
  servers_.clear();
  ExpectAnswer();
  EXPECT_EQ(num_asked_, 2);
}

TEST_F(LocalCallsTest, DaemonWithoutLocalCallsIsNotAskedAgain) {
  for (const Code code : {Code::kUnimplemented, Code::kResourceExhausted}) {
    refusal_ = code;
    num_asked_ = 0;
    LocalCalls calls([this](const CallOptions& options) { return Open(options); });
    EXPECT_FALSE(calls.Run({}, {}, {}));
    EXPECT_FALSE(calls.Run({}, {}, {}));
    EXPECT_EQ(calls.Open({}), nullptr);
    EXPECT_EQ(num_asked_, 1);
  }
}

TEST_F(LocalCallsTest, UnavailableDaemonIsAskedAgain) {
  refusal_ = Code::kUnavailable;
  for (int i = 0; i < LocalCalls::kMaxConnections + 1; ++i) EXPECT_FALSE(Run());
  refusal_ = Code::kOk;
  ExpectAnswer();
}

TEST_F(LocalCallsTest, CallsBeyondConnectionLimitUseGrpc) {
  std::promise<void> go;
  std::atomic<int> num_calls = 0;
  serve_ = [&, went = go.get_future().share()](LocalPeer& peer) {
    for (PeerFrame frame; peer.Receive(&frame); peer.Send(RunFrame())) {
      ++num_calls;
      went.wait();
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < LocalCalls::kMaxConnections; ++i)
    callers.emplace_back([this] { ExpectAnswer(); });
  AWAIT(num_calls >= LocalCalls::kMaxConnections);
  EXPECT_FALSE(Run());
  go.set_value();
  for (auto& caller : callers) caller.join();
  ExpectAnswer();
  EXPECT_EQ(num_asked_, LocalCalls::kMaxConnections);
  EndServers();
}

TEST_F(LocalCallsTest, OversizedRequestUsesGrpc) {
  v1::RunRequest request;
  request.set_session(std::string(LocalConnection::kMaxMessageBytes, 's'));
  EXPECT_FALSE(calls_.Run(request, {}, {}));
  EXPECT_EQ(num_asked_, 0);
}

TEST(LocalCallsWithoutAnOpenerTest, NoConnectionIsOpened) {
  LocalCalls calls{LocalCalls::Opener()};
  EXPECT_FALSE(calls.Run({}, {}, {}));
  EXPECT_EQ(calls.Open({}), nullptr);
}

}  // namespace
}  // namespace stride::internal
