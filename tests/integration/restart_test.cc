// Guarantees over the death of the daemon: no acknowledged array is lost, no job is lost or runs
// twice, nothing leaks, clients do not wait long. kill_test has random deaths.

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "server/base/tenant_partition.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/load.h"
#include "tests/support/daemon/rpc.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string Named(const std::string& id) { return "tenants/default/arrays/" + id; }

int CountOf(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

void KillServing(Daemon& daemon) {
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, kPatience)) << daemon.Log();
}

TEST(RestartTest, ArraysSessionsAndSocketsOutliveTheDaemon) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  const std::vector<float> content = Iota<float>(3 << 20);  // an arena of its own is created
  Array held = Must(client.Put(content, {3 << 20}));
  Array named = Must(client.Put(content, {3 << 20}, {.name = Named("x")}));
  Array sum = client.Ufunc("add", {held, named});
  Array view = client.Reshape(sum, {3, 1 << 20});
  Must(view.Wait());
  for (int round = 0; round < 3; ++round) {
    KillServing(daemon);
    EXPECT_EQ(Must(Persist([&] { return client.Fetch<float>(held); })), content);
    EXPECT_EQ(Must(client.Fetch<float>(named)), content);
    std::vector<float> got = Must(client.Fetch<float>(view));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], content[i] + content[i]);
    // The arrays can be used.
    Array total = client.Reduce(Reduction::kMax, view);
    EXPECT_EQ(Must(client.Fetch<float>(total))[0], 2 * content.back());
  }
}

TEST(RestartTest, HungDaemonIsReplacedWithoutLoss) {
  Daemon daemon({"--supervise", "--hang-timeout=10s"});
  Client client = daemon.Connect();
  const std::vector<float> content = Iota<float>(1000);
  Array array = Must(client.Put(content, {1000}));
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGSTOP);
  ASSERT_TRUE(daemon.WaitReady(times + 1, 2 * kPatience)) << daemon.Log();
  EXPECT_EQ(Must(Persist([&] { return client.Fetch<float>(array); })), content);
}

// In host memory and in files, while others are being evicted.
TEST(RestartTest, InterruptedUploadResumes) {
  Daemon daemon({"--supervise"});
  // Also in messages: shared memory ends with the daemon that provided it.
  for (const bool shared : {false, true}) {
    Client client = Must(Client::Connect({.address = daemon.address(), .share_memory = shared}));
    const std::vector<float> content = Iota<float>(8 << 20);
    const std::string name = Named(shared ? "shared" : "messages");
    std::atomic<int64_t> sent = 0;
    std::atomic<bool> killed = false;
    PutOptions options;
    options.name = name;
    options.progress = [&](int64_t bytes) {
      sent += bytes;
      if (sent > int64_t{4} << 20 && !killed.exchange(true)) kill(daemon.ServingPid(), SIGKILL);
    };
    auto put = client.Put(content, {8 << 20}, options);
    ASSERT_TRUE(put.ok()) << put.error().ToString() << daemon.Log();
    EXPECT_TRUE(killed);
    EXPECT_EQ(sent, int64_t{8} << 22);
    EXPECT_EQ(Must(Persist([&] { return client.Fetch<float>(*put); })), content);
  }
}

TEST(RestartTest, SpilledArraysOutliveTheDaemon) {
  std::string state = "/tmp/stride-spill.XXXXXX";
  ASSERT_NE(mkdtemp(state.data()), nullptr);
  {
    constexpr int64_t kCount = 1 << 20;
    constexpr int kArrays = 30;
    Daemon daemon({"--supervise", "--state-dir=" + state, "--device-memory=33554432",
                   "--spill-memory=33554432", "--spill-disk=1073741824"});
    Client client = daemon.Connect();
    auto content = [&](int i) { return Iota<int32_t>(kCount, 1000003 * i); };
    std::vector<Array> arrays, sums;
    for (int i = 0; i < kArrays; ++i)
      arrays.push_back(Must(client.Put(content(i), {kCount}, {.name = Named(std::to_string(i))})));
    std::mt19937 random(7);
    for (int round = 0; round < 6; ++round) {
      std::atomic<bool> stop{false};
      std::thread load([&] {
        Client other = daemon.Connect();
        for (int i = 0; !stop; ++i) {
          Array sum = other.Ufunc("add", {other.Open(Named(std::to_string(i % kArrays))), 1});
          if (!sum.Wait() && stop) break;
        }
      });
      std::this_thread::sleep_for(milliseconds(20 + random() % 200));
      KillServing(daemon);
      stop = true;
      load.join();
      for (int i = 0; i < kArrays; ++i) {
        auto fetched = Persist([&] { return client.Fetch<int32_t>(arrays[i]); });
        ASSERT_TRUE(fetched) << i << ": " << fetched.error().ToString();
        ASSERT_TRUE(*fetched == content(i)) << i;
      }
    }
    for (int i = 0; i < kArrays; ++i) {
      auto expected = content(i);
      for (int32_t& value : expected) value += 5;
      ASSERT_TRUE(Get<int32_t>(client, client.Ufunc("add", {arrays[i], 5})) == expected) << i;
    }
    EXPECT_TRUE(std::filesystem::is_empty(state + "/spill"));
  }
  stride::test_support::RemoveFolder(state);
}

void ExpectTheSameUsage(const Usage& before, const Usage& after) {
  EXPECT_EQ(after.start_time, before.start_time);
  EXPECT_EQ(after.upload_bytes, before.upload_bytes);
  EXPECT_EQ(after.download_bytes, before.download_bytes);
  EXPECT_EQ(after.operations, before.operations);
  EXPECT_EQ(after.operations_failed, before.operations_failed);
  EXPECT_EQ(after.jobs, before.jobs);
  EXPECT_GE(after.device_seconds, before.device_seconds);
  EXPECT_GE(after.array_byte_seconds, before.array_byte_seconds);
  ASSERT_EQ(after.devices.size(), before.devices.size());
  for (size_t i = 0; i < after.devices.size(); ++i) {
    EXPECT_EQ(after.devices[i].device, before.devices[i].device);
    EXPECT_EQ(after.devices[i].operations, before.devices[i].operations);
  }
}

// All counted work has ended when it returns.
Usage UseEverything(Client& client, const std::string& name) {
  const std::vector<double> content = Iota<double>(1000);
  Array sum = client.Ufunc("add", {Must(client.Put(content, {1000})), 1});
  Must(client.Fetch<double>(sum));
  Array outside = Must(client.Put(std::vector<int64_t>{1000}, {1}));
  MustFail(client.Compute(Operation::Gather(sum, {outside})).Wait());
  JobSpec spec;
  spec.operations.push_back(Operation::Arange(0, 10, 1, DataType::kFloat64).ToName(Named(name)));
  const Job job = Must(client.CreateJob(spec));
  EXPECT_TRUE(Eventually([&] { return Must(client.GetJob(job.name)).final(); }));
  return Must(client.GetUsage());
}

// Usage is written every few seconds while an array is held: the second file from now contains all
// current counts.
void AwaitUsageWritten(const std::string& state) {
  for (int i = 0; i < 2; ++i) {
    auto inode = [&] {
      struct stat info = {};
      return stat((state + "/usage").c_str(), &info) == 0 ? info.st_ino : 0;
    };
    const ino_t before = inode();
    ASSERT_TRUE(Eventually([&] { return inode() != before; })) << "usage is not written";
  }
}

TEST(RestartTest, UsageOutlivesTheDaemon) {
  std::string state = "/tmp/stride-usage.XXXXXX";
  ASSERT_NE(mkdtemp(state.data()), nullptr);
  Usage before;
  for (const bool orderly : {false, true}) {
    Daemon daemon({"--supervise", "--state-dir=" + state});
    Client client = daemon.Connect();
    if (orderly) ExpectTheSameUsage(before, Must(client.GetUsage()));
    const int64_t operations = before.operations;
    before = UseEverything(client, orderly ? "second" : "first");
    EXPECT_GT(before.operations, operations);
    EXPECT_GT(before.upload_bytes, 0);
    EXPECT_GT(before.download_bytes, 0);
    EXPECT_EQ(before.jobs, orderly ? 2 : 1);
    EXPECT_GE(before.operations_failed, 1);
    if (orderly) {
      daemon.Signal(SIGTERM);
      ASSERT_EQ(daemon.Wait(kPatience), 0) << daemon.Log();
      continue;
    }
    AwaitUsageWritten(state);
    KillServing(daemon);
    ExpectTheSameUsage(before, Must(Persist([&] { return client.GetUsage(); })));
  }
  // The next daemon has only the folder, as after a reboot.
  {
    Daemon daemon({"--state-dir=" + state});
    Client client = daemon.Connect();
    ExpectTheSameUsage(before, Must(client.GetUsage()));
  }
  std::filesystem::resize_file(state + "/usage", 20);
  {
    Daemon daemon({"--state-dir=" + state});
    Client client = daemon.Connect();
    EXPECT_EQ(Must(client.GetUsage()).operations, 0);
    EXPECT_THAT(daemon.Log(), ::testing::HasSubstr(state + "/usage, cannot be used"));
  }
  std::filesystem::remove_all(state);
}

TEST(RestartTest, ClientsContinueWithinASecond) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  Array array = Must(client.Put(Iota<double>(1000), {1000}));
  Must(array.Wait());
  double worst = 0;
  for (int round = 0; round < 5; ++round) {
    const auto killed = Clock::now();
    kill(daemon.ServingPid(), SIGKILL);
    ASSERT_TRUE(Persist([&] { return client.Fetch<double>(array); }));
    worst = std::max(worst, std::chrono::duration<double>(Clock::now() - killed).count());
    ASSERT_TRUE(daemon.WaitReady(round + 2, kPatience));
  }
  std::printf("  from kill -9 to the client's next answer: %.0f ms at worst\n", worst * 1e3);
  EXPECT_LT(worst, 5.0);  // a generous bound: machines of tests are busy
}

TEST(RestartTest, SettledJobAndItsRequestAreRestored) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  JobSpec spec;
  spec.request_id = "the-one";
  spec.operations.push_back(Operation::Arange(0, 10, 1, DataType::kFloat64).ToName(Named("r")));
  Job job = Must(client.CreateJob(spec));
  ASSERT_TRUE(Eventually([&] { return Must(client.GetJob(job.name)).final(); }));
  KillServing(daemon);
  Job after = Must(Persist([&] { return client.GetJob(job.name); }));
  EXPECT_EQ(after.state, Job::State::kSucceeded);
  EXPECT_EQ(after.timelines.size(), 1u);
  ASSERT_EQ(after.results.size(), 1u);
  EXPECT_EQ(after.results[0].name, Named("r"));
  EXPECT_EQ(Must(client.CreateJob(spec)).name, job.name);
  EXPECT_EQ(Must(client.ListJobs()).size(), 1u);
  EXPECT_EQ(Get<double>(client, client.Open(Named("r"))), Iota<double>(10));
}

TEST(RestartTest, FailedArrayStaysFailed) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  Array bad = client.Ufunc(
      "add", {client.Zeros({DataType::kFloat64, {3}}), client.Zeros({DataType::kFloat64, {4}})});
  Error before = MustFail(bad.Wait());
  KillServing(daemon);
  Error after = MustFail(Persist([&] { return client.Fetch<double>(bad); }));
  EXPECT_EQ(after.reason, before.reason);
}

// Work that a worker runs when it and the daemon die: new results are computed again, the result of
// a change in place is unknown, and queued work continues.
TEST(RestartTest, RunningWorkIsRepeatedOrReportedLost) {
  constexpr char kSlow[] = R"(
extern "C" __global__ void slow_copy(const double* x, double* y, const int* turns) {
  volatile double sink = 0;
  for (int i = 0; i < turns[0]; ++i) sink = sink + 1;
  y[0] = x[0] + 1;
}
extern "C" __global__ void slow_change(double* x, const int* turns) {
  volatile double sink = 0;
  x[0] = -1;
  for (int i = 0; i < turns[0]; ++i) sink = sink + 1;
  x[0] = 1;
})";
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  Array x = Must(client.Put<double>({1, 2}, {2}));
  Array bystander = Must(client.Put<double>({3, 4}, {2}));
  auto launch = [&](const char* entry, std::vector<KernelArgument> arguments) {
    KernelOptions options;
    options.code = kSlow;
    options.entry = entry;
    options.arguments = std::move(arguments);
    return client.Kernel(options);
  };
  // Compiles, and has a worker ready.
  Array few = Must(client.Put<int32_t>({1}, {1}));
  auto warm = launch("slow_copy", {bystander, KernelArgument::Out({DataType::kFloat64, {1}}), few});
  Must(warm.at(0).Wait());

  Array turns = Must(client.Put<int32_t>({300'000'000}, {1}));  // about half a second
  auto made = launch("slow_copy", {x, KernelArgument::Out({DataType::kFloat64, {1}}), turns});
  Array after = client.Ufunc("add", {made.at(0), 1.0});
  Must(after.Spec());
  std::this_thread::sleep_for(milliseconds(50));
  KillServing(daemon);
  EXPECT_EQ(Must(Persist([&] { return client.Fetch<double>(after); })), std::vector<double>{3});

  // The new daemon must compile again.
  Array scratch = Must(client.Put<double>({0}, {1}));
  launch("slow_change", {scratch, few});
  Must(client.Synchronize());
  launch("slow_change", {x, turns});
  Array dependent = client.Ufunc("add", {x, 1.0});
  Array unrelated = client.Ufunc("add", {bystander, 1.0});
  Must(unrelated.Spec());
  std::this_thread::sleep_for(milliseconds(50));
  KillServing(daemon);
  EXPECT_EQ(Must(Persist([&] { return client.Fetch<double>(unrelated); })),
            (std::vector<double>{4, 5}));
  EXPECT_EQ(MustFail(client.Fetch<double>(x)).reason, "WORKER_LOST");
  EXPECT_EQ(MustFail(client.Fetch<double>(dependent)).reason, "WORKER_LOST");
}

// A session's arrays are deleted in parts. After an interruption the session still exists with the
// remaining arrays, and can be deleted.
TEST(RestartTest, InterruptedSessionEndCanBeRepeated) {
  Daemon daemon({"--supervise"}, {}, {"STRIDE_CRASH_POINT=scheduler.part_done:2"});
  const Rpc rpc(daemon.address());
  v1::GetSessionRequest get;
  get.set_name(
      rpc.Get<v1::CreateSessionResponse>("SessionService/CreateSession", v1::CreateSessionRequest())
          .session()
          .name());
  v1::ExecuteRequest fill;
  fill.set_session(get.name());
  for (uint64_t handle = 1; handle <= 1000; ++handle) {
    v1::Command* command = fill.add_commands();
    auto* spec = command->mutable_operation()->mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_FLOAT32);
    spec->add_shape(1);
    command->mutable_operation()->add_outputs()->set_handle(handle);
    if (handle == 1000) command->set_wait(true);
  }
  ASSERT_TRUE(rpc.Call("ComputeService/Execute", fill).ok());
  v1::DeleteSessionRequest end;
  end.set_name(get.name());
  EXPECT_EQ(rpc.Call("SessionService/DeleteSession", end).code, 14) << "UNAVAILABLE";
  ASSERT_TRUE(daemon.WaitReady(2, kPatience)) << daemon.Log();
  v1::ListArraysRequest list;
  list.set_parent(get.name());
  list.set_page_size(1000);
  const int left = rpc.Get<v1::ListArraysResponse>("ArrayService/ListArrays", list).arrays_size();
  EXPECT_GT(left, 0);
  EXPECT_LT(left, 1000);
  EXPECT_TRUE(rpc.Call("SessionService/DeleteSession", end).ok());
  EXPECT_EQ(rpc.Call("SessionService/GetSession", get).reason, "SESSION_NOT_FOUND");
  Client client = daemon.Connect();
  ExpectNoArraysLeft(client);
}

// One death at each step, under load.
class CrashPointTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CrashPointTest, NothingIsLost) {
  Daemon daemon({"--supervise"}, {}, {std::string("STRIDE_CRASH_POINT=") + GetParam()});
  // One for each in the list; those in a recovery come before it serves.
  const std::string list = GetParam();
  const int deaths = 1 + static_cast<int>(std::count(list.begin(), list.end(), ','));
  const int times_ready = list.find("recovery.") == std::string::npos ? deaths + 1 : deaths;
  Load load(daemon, {.seed = 2});
  load.Start();
  EXPECT_TRUE(daemon.WaitReady(times_ready, kPatience)) << "it never died there";
  EXPECT_EQ(CountOf(daemon.Log(), "starting it again"), deaths);
  std::this_thread::sleep_for(milliseconds(100));
  load.Stop();
  load.Check();
  Client client = daemon.Connect();
  ExpectNoArraysLeft(client);
}

INSTANTIATE_TEST_SUITE_P(
    Points, CrashPointTest,
    ::testing::Values("arena.before_store:1", "arena.after_store:1", "journal.before_commit:50",
                      "journal.after_commit:51", "journal.before_commit:300",
                      "scheduler.before_submit:20", "scheduler.after_submit:21",
                      "scheduler.before_completion:22", "job.before_acceptance:3",
                      "job.after_acceptance:3", "job.before_end:3", "job.after_end:3",
                      "journal.before_compaction:1", "journal.compaction:1",
                      "journal.after_compaction:2"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

// Deaths during the recovery from the previous one.
INSTANTIATE_TEST_SUITE_P(InRecovery, CrashPointTest,
                         ::testing::Values("journal.after_commit:200,recovery.things:1",
                                           "scheduler.after_submit:30,recovery.end:1"),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

TEST(RestartTest, DaemonEndsWithoutItsSupervisor) {
  // It has the socket and two files of each journal by then.
  constexpr int kStored = 1 + 2 * (kNumTenantPartitions + 1);
  Daemon daemon({"--supervise", "--drain-timeout=1s"}, {},
                {"STRIDE_CRASH_POINT=supervisor.store:" + std::to_string(kStored + 1)});
  const pid_t serving = daemon.ServingPid();
  Client client = daemon.Connect();
  auto put = client.Put(Iota<double>(1000), {1000});  // needs an arena, which kills the holder
  ASSERT_EQ(daemon.Wait(kPatience), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return kill(serving, 0) != 0; }));
}

}  // namespace
}  // namespace stride::testing
