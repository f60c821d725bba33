// Arrays over several devices, as used by C++ clients, and their state after the daemon's death.
// tests/python/sharding_test.py covers computation.

#include <signal.h>

#include <filesystem>
#include <random>

#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/load.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ShardsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    daemon_ =
        std::make_unique<Daemon>(std::vector<std::string>{"--supervise"}, Devices{.count = 2});
    client_.emplace(daemon_->Connect());
    for (const Device& device : Must(client_->ListDevices())) {
      if (device.kind == DeviceKind()) names_.push_back(device.name);
    }
    if (names_.size() < 2) GTEST_SKIP() << "no device of kind " << DeviceKind() << " but one";
  }
  void KillServing() {
    const int times = daemon_->TimesReady();
    kill(daemon_->ServingPid(), SIGKILL);
    ASSERT_TRUE(daemon_->WaitReady(times + 1, kPatience)) << daemon_->Log();
  }
  Sharding Split(int32_t axis) const { return {.axis = axis, .devices = names_}; }

  std::unique_ptr<Daemon> daemon_;
  std::optional<Client> client_;
  std::vector<std::string> names_;
};

TEST_F(ShardsTest, PutComputeAndDescribe) {
  const std::vector<double> content = Iota<double>(35);
  PutOptions options;
  options.sharding = Split(1);
  Array x = Must(client_->Put(content, {5, 7}, options));
  EXPECT_EQ(Must(x.Describe()).sharding, Split(1));
  EXPECT_THAT(Must(x.Describe()).devices, SizeIs(names_.size()));
  EXPECT_EQ(Must(client_->Fetch<double>(x)), content);
  Array twice = client_->Ufunc("add", {x, x});
  EXPECT_EQ(Must(client_->Fetch<double>(twice))[34], 68);
  EXPECT_EQ(Must(twice.Describe()).sharding, Split(1));
  Array sum = client_->Reduce(Reduction::kSum, x);
  EXPECT_EQ(Must(client_->Fetch<double>(sum))[0], 34 * 35 / 2);
  EXPECT_EQ(Must(sum.Describe()).sharding, std::nullopt);
  Array rows = client_->Compute(Operation::Copy(x).Spread(Split(0)));
  EXPECT_EQ(Must(client_->Fetch<double>(rows)), content);
  EXPECT_EQ(Must(rows.Describe()).sharding, Split(0));
}

TEST_F(ShardsTest, ShardsOutliveTheDaemon) {
  const std::vector<float> content = Iota<float>(3 << 18);
  PutOptions options;
  options.sharding = Split(0);
  Array held = Must(client_->Put(content, {3 << 18}, options));
  options.name = "tenants/default/arrays/x";
  Array named = Must(client_->Put(content, {3 << 18}, options));
  Array sum = client_->Ufunc("add", {held, named});
  Must(sum.Wait());
  for (int round = 0; round < 2; ++round) {
    KillServing();
    EXPECT_EQ(Must(Persist([&] { return client_->Fetch<float>(held); })), content);
    EXPECT_EQ(Must(client_->Fetch<float>(named)), content);
    EXPECT_EQ(Must(held.Describe()).sharding, Split(0));
    const std::vector<float> got = Must(client_->Fetch<float>(sum));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], content[i] + content[i]);
    Array most = client_->Reduce(Reduction::kMax, sum);
    EXPECT_EQ(Must(client_->Fetch<float>(most))[0], 2 * content.back());
  }
}

// The combining launch reads results of other devices' workers. If any worker dies, its result
// exists or is computed again.
TEST_F(ShardsTest, SumsOutliveWorkers) {
  PutOptions options;
  options.sharding = Split(0);
  const std::vector<double> content = Iota<double>(8 * 1000);
  Array x = Must(client_->Put(content, {8, 1000}, options));
  ReduceOptions rows;
  rows.axes = {0};
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<Array> sums;
    for (int i = 0; i < 10; ++i) sums.push_back(client_->Reduce(Reduction::kSum, x, rows));
    const std::vector<pid_t> workers = daemon_->Workers();
    if (!workers.empty()) kill(workers[random() % workers.size()], SIGKILL);
    for (Array& sum : sums) {
      const std::vector<double> got = Must(client_->Fetch<double>(sum));
      for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 8.0 * i + 28000) << "element " << i;
    }
  }
}

// A named array on disk has one piece.
TEST(NamedShardsTest, NamedShardsAreRefusedOnDurableDaemons) {
  std::string state = "/tmp/stride-shards.XXXXXX";
  ASSERT_NE(mkdtemp(state.data()), nullptr);
  {
    Daemon daemon({"--state-dir=" + state}, Devices{.count = 2});
    Client client = daemon.Connect();
    PutOptions options;
    options.sharding = Sharding{};
    options.name = "tenants/default/arrays/x";
    const Error error = MustFail(client.Put(Iota<float>(10), {10}, options));
    EXPECT_EQ(error.code, Code::kUnimplemented) << error.ToString();
    EXPECT_THAT(error.message, HasSubstr("durable-bytes"));
  }
  stride::test_support::RemoveFolder(state);
}

}  // namespace
}  // namespace stride::testing
