// Runs and commands of the C++ client by local connections, and by gRPC without them.

#include <signal.h>

#include <cstring>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/load.h"

namespace stride::testing {
namespace {

Operation Add(int32_t left, int32_t right) {
  return Operation::Ufunc("add", {Operand(left), Operand(right)});
}

void ExpectSum(Client& client, int32_t left) {
  const RunReply reply = Must(client.Run(Add(left, 1)));
  ASSERT_EQ(reply.values.size(), 1u);
  int64_t sum = 0;
  ASSERT_LE(reply.values[0].data.size(), sizeof(sum));
  std::memcpy(&sum, reply.values[0].data.data(), reply.values[0].data.size());
  EXPECT_EQ(sum, left + 1);
}

// The log of a daemon with --log-level=debug, which writes a line per call.
int64_t NumLines(const Daemon& daemon, const std::string& text) {
  const std::string log = daemon.Log();
  int64_t count = 0;
  for (size_t at = log.find(text); at != log.npos; at = log.find(text, at + 1)) ++count;
  return count;
}
int64_t NumConnects(const Daemon& daemon) {
  return NumLines(daemon, "method=LocalService/Connect ");
}

void UseAll(Client& client) {
  for (int i = 0; i < 5; ++i) ExpectSum(client, i);
  const Array array = client.Full({DataType::kInt32, {3}}, 7);
  EXPECT_THAT(Get<int32_t>(client, array), ::testing::ElementsAre(7, 7, 7));
  Must(client.Synchronize());
}

TEST(LocalCallsTest, RunsAndCommandsUseOneConnectionEach) {
  Daemon daemon({"--log-level=debug"});
  {
    Client client = daemon.Connect();
    UseAll(client);
  }
  ASSERT_TRUE(daemon.WaitForLog("method=SessionService/DeleteSession ", std::chrono::seconds(100)));
  EXPECT_EQ(NumConnects(daemon), 2);
}

// Small arrays in messages, larger ones through a region: one call each, by the connection of Runs.
TEST(LocalCallsTest, SmallTransfersUseLocalCalls) {
  Daemon daemon({"--log-level=debug"});
  {
    Client client = daemon.Connect();
    for (const int64_t count : {0, 10, 1000, 300'000}) {
      std::vector<int32_t> values(count);
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(i * 7);
      const Array array = Must(client.Put(values, {count}));
      EXPECT_EQ(Must(client.Fetch<int32_t>(array)), values);
    }
    const Error error = MustFail(client.Put(std::vector<int32_t>(3), {3}, {.device = "none:1"}));
    EXPECT_EQ(error.code, Code::kNotFound) << error.ToString();
    ExpectSum(client, 1);
  }
  ASSERT_TRUE(daemon.WaitForLog("method=SessionService/DeleteSession ", std::chrono::seconds(100)));
  EXPECT_EQ(NumLines(daemon, "method=ArrayService/PutArray "), 5);
  // A part in flight while the next is copied has its own connection.
  EXPECT_LE(NumConnects(daemon), 3);
}

TEST(LocalCallsTest, ClientMayDisableLocalCalls) {
  Daemon daemon({"--log-level=debug"});
  {
    Client client = Must(Client::Connect({.address = daemon.address(), .local_calls = false}));
    UseAll(client);
    Must(client.Put(std::vector<int32_t>(1000), {1000}));
  }
  ASSERT_TRUE(daemon.WaitForLog("method=SessionService/DeleteSession ", std::chrono::seconds(100)));
  EXPECT_EQ(NumConnects(daemon), 0);
}

// Eight threads leave room for one connection.
TEST(LocalCallsTest, CallsBeyondConnectionLimitUseGrpc) {
  Daemon daemon({"--log-level=debug", "--max-threads=8"});
  Client first = daemon.Connect(), second = daemon.Connect();
  ExpectSum(first, 1);
  UseAll(second);
  UseAll(first);
  ASSERT_TRUE(daemon.WaitForLog("code=RESOURCE_EXHAUSTED", std::chrono::seconds(100)));
  EXPECT_GE(NumConnects(daemon), 3);
}

TEST(LocalCallsTest, ThreadsCallConcurrently) {
  Daemon daemon;
  Client client = daemon.Connect();
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t) {
    threads.emplace_back([&client, t] {
      for (int i = 0; i < 20; ++i) ExpectSum(client, 1000 * t + i);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(LocalCallsTest, ReplacedDaemonOpensNewConnections) {
  Daemon daemon({"--supervise", "--log-level=debug"});
  Client client = daemon.Connect();
  UseAll(client);
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
  Must(Persist([&] { return client.Run(Add(1, 1)); }));
  Must(Persist([&] { return client.Synchronize(); }));
  UseAll(client);
  EXPECT_TRUE(Eventually([&] { return NumConnects(daemon) >= 4; }));
}

}  // namespace
}  // namespace stride::testing
