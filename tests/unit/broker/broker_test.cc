#include "server/broker/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/broker/discovery.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/broker/recorder.h"

namespace stride::broker {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

BrokerOptions Options() {
  BrokerOptions options;
  options.worker_directory = FAKE_WORKERS;
  options.staging_bytes = 1 << 20;
  options.staging_slot_bytes = 64 << 10;
  return options;
}

std::unique_ptr<Broker> MakeBroker() {
  auto broker = Broker::Create(Options());
  EXPECT_TRUE(broker.ok()) << broker.status();
  return *std::move(broker);
}

TEST(BrokerTest, ListsTheDevicesOfTheWorkersItFinds) {
  auto broker = MakeBroker();
  ASSERT_EQ(broker->devices().size(), 2u);
  EXPECT_EQ(broker->devices()[1].id(), "fake:1");
  EXPECT_THAT(broker->notes(), Contains(HasSubstr("stride-worker-fake: 2 devices")));
}

TEST(BrokerTest, ReportsTheSandbox) {
  auto broker = MakeBroker();
  EXPECT_THAT(broker->notes(), Contains(HasSubstr("stride-worker-fake: sandbox: ")));
}

// Where a layer is unavailable, a worker exits with code 71.
TEST(BrokerTest, UnavailableRequiredSandboxIsAnError) {
  const fs::path folder = fs::path(testing::TempDir()) / absl::StrCat("no_sandbox_", getpid());
  fs::create_directories(folder);
  fs::copy(fs::path(FAKE_WORKERS) / "stride-worker-fake", folder / "stride-worker-fake");
  std::ofstream(folder / "stride-worker-bare")
      << "#!/bin/sh\ncase $2 in --sandbox=require) exit 71;; esac\nexit 3\n";
  fs::permissions(folder / "stride-worker-bare", fs::perms::owner_all);
  BrokerOptions options = Options();
  options.worker_directory = folder;
  EXPECT_TRUE(Broker::Create(options).ok());
  options.sandbox.mode = SandboxPolicy::Mode::kRequire;
  auto refused = Broker::Create(options);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("stride-worker-bare"));
  stride::test_support::RemoveFolder(folder);
}

TEST(BrokerTest, EachStartIsANewWorker) {
  auto broker = MakeBroker();
  std::vector<std::shared_ptr<Worker>> workers;
  for (int i = 0; i < 5; ++i) {
    auto worker = broker->StartWorker(i % 2);
    ASSERT_TRUE(worker.ok()) << worker.status();
    for (auto& other : workers) EXPECT_NE(other->pid(), (*worker)->pid());
    EXPECT_EQ((*worker)->device().index(), i % 2);
    workers.push_back(*worker);
  }
}

TEST(BrokerTest, TakesAndReplacesSpares) {
  auto broker = MakeBroker();
  // Taking a spare costs microseconds, a new process milliseconds. Eventually the thread has
  // started one.
  absl::Duration least = absl::InfiniteDuration();
  SteadyTime give_up = Now() + absl::Seconds(100);
  while (least > absl::Microseconds(500) && Now() < give_up) {
    SteadyTime begin = Now();
    auto worker = broker->StartWorker(0);
    ASSERT_TRUE(worker.ok());
    least = std::min(least, Now() - begin);
  }
  EXPECT_LT(least, absl::Microseconds(500));
}

TEST(BrokerTest, WorkersEndWithTheBroker) {
  auto broker = MakeBroker();
  JournalWriter recorder;
  auto worker = broker->StartWorker(0).value();
  pid_t pid = worker->pid();
  worker->Adopt(recorder.callbacks());
  broker->Shutdown();
  EXPECT_TRUE(recorder.WaitForDeath().has_value());
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_TRUE(absl::IsUnavailable(broker->StartWorker(0).status()));
  broker.reset();
  worker->Copy(true, 1, 0, 0, 1, recorder.copy_done());  // still reported
  EXPECT_TRUE(absl::IsUnavailable(recorder.WaitForCopies(1)[0]));
}

TEST(BrokerTest, ThreadExitDoesNotEndWorkers) {
  auto broker = MakeBroker();
  std::shared_ptr<Worker> first, second;
  // The only spare cannot serve the second start: its process is started for this short-lived
  // thread.
  std::thread([&] {
    first = broker->StartWorker(0).value();
    second = broker->StartWorker(0).value();
  }).join();
  JournalWriter recorder;
  second->Adopt(recorder.callbacks());
  wire::Task task;
  task.set_sequence(1);
  wire::TaskPacket packet;
  packet.Add(task);
  ASSERT_TRUE(second->Submit(packet).ok());
  EXPECT_EQ(recorder.WaitForResults(1).size(), 1u);
  second.reset();
  broker->Shutdown();
}

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("broker_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { stride::test_support::RemoveFolder(folder_); }
  void AddScript(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  fs::path folder_;
};

TEST_F(FolderTest, BadWorkersAreReportedAsNotes) {
  AddScript("stride-worker-bad", "exit 3");
  AddScript("stride-worker-noise", "echo this is no list");
  AddScript("stride-worker-slow", "sleep 60");
  AddScript("other-program", "touch \"$0.was-run\"");
  fs::create_symlink(fs::path(FAKE_WORKERS) / "stride-worker-fake", folder_ / "stride-worker-fake");
  BrokerOptions options = Options();
  options.worker_directory = folder_;
  options.start_timeout = absl::Seconds(5);  // also for workers that do report, on a busy machine
  auto broker = Broker::Create(options);
  ASSERT_TRUE(broker.ok()) << broker.status();
  EXPECT_EQ((*broker)->devices().size(), 2u);
  EXPECT_THAT((*broker)->notes(), Contains("stride-worker-bad: not used: it exited with code 3"));
  EXPECT_THAT((*broker)->notes(), Contains(HasSubstr("stride-worker-noise: not used")));
  EXPECT_THAT((*broker)->notes(), Contains(HasSubstr("stride-worker-slow: not used: it did not")));
  EXPECT_FALSE(fs::exists(folder_ / "other-program.was-run"));
}

TEST_F(FolderTest, NoDeviceIsAnError) {
  BrokerOptions options = Options();
  options.worker_directory = folder_;
  EXPECT_TRUE(absl::IsFailedPrecondition(Broker::Create(options).status()));
  options.worker_directory = folder_ / "missing";
  EXPECT_TRUE(absl::IsNotFound(Broker::Create(options).status()));
}

TEST(CpuDevicesTest, CpuDevicesShareTheMachine) {
  FoundDevice machine;
  machine.description.set_kind("cpu");
  machine.description.set_memory_bytes(1000);
  machine.description.set_num_compute_units(16);
  auto devices = MakeCpuDevices(machine, {0, 2});
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].description.id(), "cpu:0");
  EXPECT_EQ(devices[0].description.num_compute_units(), 16);
  EXPECT_EQ(devices[1].description.id(), "cpu:1");
  EXPECT_EQ(devices[1].description.num_compute_units(), 2);
  EXPECT_EQ(devices[1].num_threads, 2);
  EXPECT_EQ(devices[1].description.memory_bytes(), 500);
}

}  // namespace
}  // namespace stride::broker
