// Command streams over local connections. client_test covers those by gRPC.
#include "client/cpp/src/command_stream.h"

#include <filesystem>
#include <future>

#include "client/cpp/src/command_connection.h"
#include "tests/support/fake_daemon/fake_daemon.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/client/cpp/local_peer.h"

namespace stride::internal {
namespace {

TEST(LocalCommandConnectionTest, CarriesMessagesBothWays) {
  auto [client, peer] = ConnectedPair();
  const auto connection = ExecuteLocally(std::move(client));
  v1::ExecuteRequest request;
  request.set_session("sessions/1");
  ASSERT_TRUE(connection->Write(request));
  PeerFrame frame;
  ASSERT_TRUE(peer->Receive(&frame));
  EXPECT_EQ(frame.kind, static_cast<uint32_t>(v1::LOCAL_FRAME_EXECUTE));
  EXPECT_EQ(frame.timeout_ns, 0u);
  EXPECT_EQ(frame.bytes, request.SerializeAsString());
  v1::ExecuteResponse response;
  response.add_results()->set_id(7);
  peer->Send(Frame(v1::LOCAL_FRAME_EXECUTE, response.SerializeAsString()));
  v1::ExecuteResponse read;
  ASSERT_TRUE(connection->Read(&read, /*watch=*/true));
  EXPECT_EQ(read.results(0).id(), 7u);
}

TEST(LocalCommandConnectionTest, ReportsTheReasonOfTheDaemon) {
  auto [client, peer] = ConnectedPair();
  const auto connection = ExecuteLocally(std::move(client));
  peer->Send(StatusFrame(static_cast<int>(Code::kNotFound), "SESSION_NOT_FOUND"));
  v1::ExecuteResponse response;
  EXPECT_FALSE(connection->Read(&response, /*watch=*/false));
  const Error error = connection->Finish();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.reason, "SESSION_NOT_FOUND");
  // A write after the end fails.
  EXPECT_FALSE(connection->Write({}));
}

TEST(LocalCommandConnectionTest, BrokenConnectionIsUnavailable) {
  auto [client, peer] = ConnectedPair();
  const auto connection = ExecuteLocally(std::move(client));
  peer.reset();
  v1::ExecuteResponse response;
  EXPECT_FALSE(connection->Read(&response, /*watch=*/false));
  EXPECT_EQ(connection->Finish().code, Code::kUnavailable);
}

TEST(LocalCommandConnectionTest, CancelEndsTheStream) {
  auto [client, peer] = ConnectedPair();
  const auto connection = ExecuteLocally(std::move(client));
  std::thread reader([&, &c = *connection] {
    v1::ExecuteResponse response;
    EXPECT_FALSE(c.Read(&response, /*watch=*/false));
    EXPECT_EQ(c.Finish().code, Code::kCancelled);
  });
  connection->Cancel();
  reader.join();
}

// A fake daemon serves sessions; `serve` serves command streams.
class LocalCommandStreamTest : public ::testing::Test {
 protected:
  LocalCommandStreamTest() {
    std::string name = std::filesystem::temp_directory_path() / "stream.XXXXXX";
    folder_ = mkdtemp(name.data());
    const std::string address = "unix:" + folder_ + "/s";
    daemon_ = std::make_unique<testing::FakeDaemon>(address);
    channels_ = std::make_unique<Channels>(
        address, address, Credentials{.channel = grpc::InsecureChannelCredentials()}, 1);
    session_ = std::make_unique<Session>(*channels_, std::chrono::seconds(600));
    stream_ = std::make_unique<CommandStream>(*channels_, local_, *session_);
  }
  ~LocalCommandStreamTest() override {
    Close();
    session_.reset();
    channels_.reset();
    daemon_.reset();
    stride::test_support::RemoveFolder(folder_);
  }

  void Close() {
    stream_->Close();
    for (auto& server : servers_) server.join();
    servers_.clear();
  }
  static void AnswerAll(LocalPeer& peer) {
    for (PeerFrame frame; peer.Receive(&frame);) {
      v1::ExecuteRequest request;
      ASSERT_TRUE(request.ParseFromString(frame.bytes));
      v1::ExecuteResponse response;
      for (const auto& command : request.commands()) response.add_results()->set_id(command.id());
      peer.Send(Frame(v1::LOCAL_FRAME_EXECUTE, response.SerializeAsString()));
    }
  }
  std::shared_ptr<PendingCommand> Submit() {
    v1::Command command;
    command.mutable_synchronize();
    return stream_->Submit(std::move(command));
  }
  static Code CodeOf(PendingCommand& command) {
    const auto answer = command.Wait({}, {});
    return answer ? Code::kOk : answer.error().code;
  }

  std::string folder_;
  std::unique_ptr<testing::FakeDaemon> daemon_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<Session> session_;
  std::function<void(LocalPeer&)> serve_ = AnswerAll;
  std::vector<std::thread> servers_;
  LocalCalls local_{[this](const CallOptions&) -> Result<std::unique_ptr<LocalConnection>> {
    auto [client, peer] = ConnectedPair();
    servers_.emplace_back(
        [serve = serve_, peer = std::shared_ptr(std::move(peer))] { serve(*peer); });
    return std::move(client);
  }};
  std::unique_ptr<CommandStream> stream_;
};

TEST_F(LocalCommandStreamTest, CommandsUseOnlyTheConnection) {
  std::vector<std::shared_ptr<PendingCommand>> commands;
  for (int i = 0; i < 1000; ++i) commands.push_back(Submit());
  for (auto& command : commands) EXPECT_EQ(CodeOf(*command), Code::kOk);
  EXPECT_EQ(servers_.size(), 1u);
  EXPECT_EQ(daemon_->counters().streams, 0);
}

TEST_F(LocalCommandStreamTest, LostSessionIsReplaced) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    peer.Send(StatusFrame(static_cast<int>(Code::kNotFound), "SESSION_NOT_FOUND"));
  };
  EXPECT_EQ(CodeOf(*Submit()), Code::kNotFound);
  serve_ = AnswerAll;
  EXPECT_EQ(CodeOf(*Submit()), Code::kOk);
  EXPECT_EQ(servers_.size(), 2u);
  EXPECT_EQ(daemon_->counters().sessions, 2);
}

TEST_F(LocalCommandStreamTest, BrokenConnectionIsReplaced) {
  serve_ = [](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
  };
  EXPECT_EQ(CodeOf(*Submit()), Code::kUnavailable);
  serve_ = AnswerAll;
  EXPECT_EQ(CodeOf(*Submit()), Code::kOk);
  EXPECT_EQ(daemon_->counters().sessions, 1);
}

TEST_F(LocalCommandStreamTest, CloseCancelsUnansweredCommands) {
  std::promise<void> received;
  serve_ = [&](LocalPeer& peer) {
    PeerFrame frame;
    ASSERT_TRUE(peer.Receive(&frame));
    received.set_value();
    EXPECT_FALSE(peer.Receive(&frame));
  };
  const auto command = Submit();
  received.get_future().wait();
  Close();
  EXPECT_EQ(CodeOf(*command), Code::kCancelled);
}

}  // namespace
}  // namespace stride::internal
