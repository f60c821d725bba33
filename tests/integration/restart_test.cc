// What the death of the daemon may not do: lose an array that was acknowledged, lose a job or run
// it twice, leak, or keep clients waiting. STRIDE_KILLS sets how many random kills there are.

#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"

namespace stride::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr int kIncrements = 4;

std::string Named(const std::string& id) { return "tenants/default/arrays/" + id; }

int NumKills() {
  const char* text = std::getenv("STRIDE_KILLS");
  return text != nullptr ? std::atoi(text) : 20;
}

// Calls until the daemon is there again; any other error ends the test.
template <typename F>
auto Persist(F call) -> decltype(call()) {
  const auto give_up = Clock::now() + kPatience;
  for (;;) {
    auto result = call();
    if (result || result.error().code != Code::kUnavailable || Clock::now() > give_up)
      return result;
    std::this_thread::sleep_for(milliseconds(5));
  }
}

int OpenDescriptors(pid_t pid) {
  std::error_code error;
  int count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error))
    ++count;
  return count;
}

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

// What a client was told is there, with its content; and jobs that it was told were accepted.
class Load {
 public:
  explicit Load(Daemon& daemon, uint32_t seed) : daemon_(daemon), seed_(seed) {}
  ~Load() { Stop(); }

  void Start() {
    for (auto run : {&Load::RunArrays, &Load::RunChains, &Load::RunJobs}) {
      threads_.emplace_back([this, run] {
        try {
          (this->*run)();
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
  }
  void Stop() {
    stopping_ = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  // Everything is there and is what it was; then it is deleted.
  void Check() {
    Client client = daemon_.Connect();
    for (const auto& [id, content] : named_) {
      Array array = client.Open(Named(id));
      auto fetched = Persist([&] { return client.Fetch<double>(array); });
      ASSERT_TRUE(fetched) << id << ": " << fetched.error().ToString();
      EXPECT_TRUE(*fetched == content) << id;
    }
    int lost = 0;
    for (const auto& [name, id] : jobs_) CheckJob(client, name, id, &lost);
    std::printf("  %zu named arrays, %d chains, %zu jobs (%d were changing an array in place)\n",
                named_.size(), num_chains_.load(), jobs_.size(), lost);
    DeleteAll(client);
  }

 private:
  void RunArrays() {
    Client client = daemon_.Connect();
    std::mt19937 random(seed_);
    for (int i = 0; !stopping_; ++i) {
      std::vector<double> content(1 + random() % 40000);
      for (double& value : content) value = random();
      PutOptions options;
      options.name = Named("a" + std::to_string(i));
      auto put = Persist(
          [&] { return client.Put(content, {static_cast<int64_t>(content.size())}, options); });
      // The answer to one that was taken may have been lost with the daemon.
      if (!put && put.error().reason != "ALREADY_EXISTS")
        throw std::runtime_error(put.error().ToString());
      if (put) named_["a" + std::to_string(i)] = std::move(content);
      if (i >= 200) std::this_thread::sleep_for(milliseconds(20));
    }
  }

  // Unnamed arrays of one session, each made from the one before.
  void RunChains() {
    Client client = daemon_.Connect();
    const std::vector<double> start = Iota<double>(1000);
    while (!stopping_) {
      auto put = Persist([&] { return client.Put(start, {1000}); });
      if (!put) throw std::runtime_error(put.error().ToString());
      Array array = *std::move(put);
      int length = 0;
      for (; length < 200 && !stopping_; ++length) {
        Array next = client.Ufunc("add", {array, 1.0});
        // Only what was acknowledged counts: an operation whose answer was lost may or may not be.
        if (auto done = next.Wait(); !done) {
          if (done.error().code != Code::kUnavailable)
            throw std::runtime_error(done.error().ToString());
          break;
        }
        array = std::move(next);
      }
      auto fetched = Persist([&] { return client.Fetch<double>(array); });
      if (!fetched) throw std::runtime_error(fetched.error().ToString());
      for (int i = 0; i < 1000; ++i) {
        if ((*fetched)[i] != i + length) throw std::runtime_error("a chain has a wrong value");
      }
      ++num_chains_;
    }
  }

  // Fresh arrays, which may be made twice, and an array that is changed in place, where it would
  // show.
  void RunJobs() {
    Client client = daemon_.Connect();
    for (int i = 0; !stopping_; ++i) {
      const std::string id = std::to_string(i);
      JobSpec spec;
      spec.request_id = "request-" + id;
      spec.operations.push_back(Operation::Arange(0, 500, 1, DataType::kFloat64).ToJobHandle(1));
      spec.operations.push_back(
          Operation::Ufunc("multiply", {Operand::JobHandle(1), 3.0}).ToName(Named("out" + id)));
      spec.operations.push_back(
          Operation::Zeros({DataType::kFloat64, {1 << 15}}).ToName(Named("count" + id)));
      Array count = client.Open(Named("count" + id));
      for (int k = 0; k < kIncrements; ++k)
        spec.operations.push_back(Operation::Ufunc("add", {count, 1.0}).ToExisting(count));
      auto job = Persist([&] { return client.CreateJob(spec); });
      if (!job) throw std::runtime_error(job.error().ToString());
      auto again = Persist([&] { return client.CreateJob(spec); });
      if (!again || again->name != job->name)
        throw std::runtime_error("a repeated request made another job");
      jobs_[job->name] = id;
      std::this_thread::sleep_for(milliseconds(jobs_.size() < 200 ? 1 : 20));
    }
  }

  static void CheckJob(Client& client, const std::string& name, const std::string& id, int* lost) {
    Result<Job> job = client.GetJob(name);
    ASSERT_TRUE(Eventually([&] {
      job = Persist([&] { return client.GetJob(name); });
      return !job || job->final();
    })) << name
        << " does not end: " << Name(job->state);
    ASSERT_TRUE(job) << job.error().ToString();
    Array count = client.Open(Named("count" + id));
    auto counted = Persist([&] { return client.Fetch<double>(count); });
    if (job->state == Job::State::kFailed) {
      // The one thing that cannot be known: how far a change in place came.
      ++*lost;
      EXPECT_EQ(job->error->reason, "WORKER_LOST") << job->error->ToString();
      EXPECT_FALSE(counted);
      return;
    }
    ASSERT_EQ(job->state, Job::State::kSucceeded) << name << ": " << Name(job->state);
    Array out = client.Open(Named("out" + id));
    auto fetched = Persist([&] { return client.Fetch<double>(out); });
    ASSERT_TRUE(fetched) << fetched.error().ToString();
    for (int i = 0; i < 500; ++i) ASSERT_EQ((*fetched)[i], 3.0 * i);
    ASSERT_TRUE(counted) << counted.error().ToString();
    for (double value : *counted) ASSERT_EQ(value, kIncrements) << name;
  }

  static void DeleteAll(Client& client) {
    auto arrays = Persist([&] { return client.ListArrays("tenants/default"); });
    ASSERT_TRUE(arrays);
    for (const ArrayInfo& info : *arrays)
      ASSERT_TRUE(Persist([&] { return client.DeleteArray(info.name); }));
    auto jobs = Persist([&] { return client.ListJobs(); });
    ASSERT_TRUE(jobs);
    for (const Job& job : *jobs) ASSERT_TRUE(Persist([&] { return client.DeleteJob(job.name); }));
  }

  Daemon& daemon_;
  const uint32_t seed_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
  std::map<std::string, std::vector<double>> named_;
  std::map<std::string, std::string> jobs_;  // name -> number
  std::atomic<int> num_chains_{0};
};

int64_t ArrayBytes(Client& client) {
  int64_t bytes = -1;
  Must(client.WatchDevices({}, [&](const std::vector<DeviceSample>& samples) {
    bytes = 0;
    for (const DeviceSample& sample : samples) bytes += sample.array_bytes;
    return false;
  }));
  return bytes;
}

void ExpectNothingLeft(Daemon& daemon) {
  Client client = daemon.Connect();
  EXPECT_TRUE(Eventually([&] { return ArrayBytes(client) == 0; })) << ArrayBytes(client);
}

TEST(RestartTest, ArraysSessionsAndSocketsOutliveTheDaemon) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  const std::vector<float> content = Iota<float>(3 << 20);  // an arena of its own is made
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
    // And they can be worked with.
    Array total = client.Reduce(Reduction::kMax, view);
    EXPECT_EQ(Must(client.Fetch<float>(total))[0], 2 * content.back());
  }
}

// In host memory and in files, while more are on their way there.
TEST(RestartTest, ArraysThatHadLeftTheDeviceOutliveTheDaemon) {
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
  std::filesystem::remove_all(state);
}

TEST(RestartTest, ClientsGoOnWithinASecond) {
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

TEST(RestartTest, ASettledJobAndItsRequestAreKnownAfterwards) {
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

TEST(RestartTest, AnArrayThatFailedStaysFailed) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  Array bad = client.Ufunc(
      "add", {client.Zeros({DataType::kFloat64, {3}}), client.Zeros({DataType::kFloat64, {4}})});
  Error before = MustFail(bad.Wait());
  KillServing(daemon);
  Error after = MustFail(Persist([&] { return client.Fetch<double>(bad); }));
  EXPECT_EQ(after.reason, before.reason);
}

// What a worker runs when it and the daemon die: made afresh it is made again, changed in place it
// is not known what it is; what only waited goes on.
TEST(RestartTest, RunningWorkIsRunAgainOrSaysThatItIsLost) {
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

  // The new daemon has to compile again.
  Array scratch = Must(client.Put<double>({0}, {1}));
  launch("slow_change", {scratch, few});
  Must(client.Synchronize());
  launch("slow_change", {x, turns});
  Array behind = client.Ufunc("add", {x, 1.0});
  Array beside = client.Ufunc("add", {bystander, 1.0});
  Must(beside.Spec());
  std::this_thread::sleep_for(milliseconds(50));
  KillServing(daemon);
  EXPECT_EQ(Must(Persist([&] { return client.Fetch<double>(beside); })),
            (std::vector<double>{4, 5}));
  EXPECT_EQ(MustFail(client.Fetch<double>(x)).reason, "WORKER_LOST");
  EXPECT_EQ(MustFail(client.Fetch<double>(behind)).reason, "WORKER_LOST");
}

TEST(RestartTest, RandomKillsUnderLoad) {
  Daemon daemon({"--supervise"}, {.count = 2});
  const int descriptors = OpenDescriptors(daemon.pid());
  std::mt19937 random(7);
  Load load(daemon, 1);
  load.Start();
  for (int i = 0; i < NumKills() && !::testing::Test::HasFatalFailure(); ++i) {
    std::this_thread::sleep_for(milliseconds(random() % 300));
    KillServing(daemon);
  }
  load.Stop();
  load.Check();
  ExpectNothingLeft(daemon);
  // The holder has the journal, the socket, and what is in use now.
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors(daemon.pid()) < descriptors + 20; }))
      << OpenDescriptors(daemon.pid()) << " descriptors, at first " << descriptors;
}

// One death at each step, under load.
class CrashPointTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CrashPointTest, NothingIsLost) {
  Daemon daemon({"--supervise"}, {}, {std::string("STRIDE_CRASH_POINT=") + GetParam()});
  // One for each in the list; those in a recovery come before it serves.
  const std::string list = GetParam();
  const int deaths = 1 + static_cast<int>(std::count(list.begin(), list.end(), ','));
  const int times_ready = list.find("recovery.") == std::string::npos ? deaths + 1 : deaths;
  Load load(daemon, 2);
  load.Start();
  EXPECT_TRUE(daemon.WaitReady(times_ready, kPatience)) << "it never died there";
  EXPECT_EQ(CountOf(daemon.Log(), "starting it again"), deaths);
  std::this_thread::sleep_for(milliseconds(100));
  load.Stop();
  load.Check();
  ExpectNothingLeft(daemon);
}

INSTANTIATE_TEST_SUITE_P(
    Points, CrashPointTest,
    ::testing::Values("arena.before_store:1", "arena.after_store:1", "journal.before_commit:50",
                      "journal.after_commit:51", "journal.before_commit:300",
                      "scheduler.before_submit:20", "scheduler.after_submit:21",
                      "scheduler.before_completion:22", "job.before_acceptance:3",
                      "job.after_acceptance:3", "journal.before_compaction:1",
                      "journal.compaction:1", "journal.after_compaction:2"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

// Deaths during the recovery from the one before.
INSTANTIATE_TEST_SUITE_P(InRecovery, CrashPointTest,
                         ::testing::Values("journal.after_commit:200,recovery.things:1",
                                           "scheduler.after_submit:30,recovery.end:1"),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

TEST(RestartTest, WithoutItsHolderTheDaemonEnds) {
  Daemon daemon({"--supervise", "--drain-timeout=1s"}, {}, {"STRIDE_CRASH_POINT=holder.store:4"});
  const pid_t serving = daemon.ServingPid();
  Client client = daemon.Connect();
  auto put = client.Put(Iota<double>(1000), {1000});  // needs an arena, which the holder dies of
  ASSERT_EQ(daemon.Wait(kPatience), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return kill(serving, 0) != 0; }));
}

}  // namespace
}  // namespace stride::testing
