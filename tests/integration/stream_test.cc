// Arrays of five times the device's memory: uploaded, computed on, fetched. Each result is compared
// with that of a daemon with enough memory.

#include <signal.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kDevice = 16 * kMiB;
constexpr int64_t kRows = 5120, kColumns = 4096;  // 80 MiB of float32

// How often the operation to be interrupted runs: a GPU needs a fraction of a second each time.
int NumTimes() { return OnCpu() ? 1 : 12; }

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    std::string pattern = "/tmp/stride-stream.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    state_ = pattern;
  }
  ~StreamTest() override { stride::test_support::RemoveFolder(state_); }
  std::vector<std::string> Flags(int64_t memory, int64_t disk) const {
    return {"--state-dir=" + state_, "--device-memory=" + std::to_string(kDevice),
            "--spill-memory=" + std::to_string(memory), "--spill-disk=" + std::to_string(disk)};
  }
  static std::vector<float> Content(uint32_t seed) {
    std::vector<float> values(kRows * kColumns);
    uint32_t state = seed;
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 21);
    }
    return values;
  }
  static DeviceSample Sample(Client& client) {
    DeviceSample sample;
    Must(client.WatchDevices({}, [&](const std::vector<DeviceSample>& samples) {
      sample = samples[0];
      return false;
    }));
    return sample;
  }
  std::string state_;
};

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// One daemon with little memory and one with enough, and the same work on both.
class Pair {
 public:
  Pair(const std::vector<std::string>& flags) : little_(flags) {
    for (Daemon* daemon : {&little_, &enough_}) clients_.push_back(daemon->Connect());
  }
  Client& little() { return clients_[0]; }
  using Make = std::function<Array(Client&)>;
  template <typename T>
  void ExpectSame(const char* what, const Make& make) {
    const auto begin = Clock::now();
    auto got = Get<T>(clients_[0], make(clients_[0]));
    std::printf("  %-28s %.2f s\n", what,
                std::chrono::duration<double>(Clock::now() - begin).count());
    EXPECT_TRUE(SameBits(got, Get<T>(clients_[1], make(clients_[1])))) << what;
  }
  void ExpectNear(const char* what, double tolerance, const Make& make) {
    auto got = Get<float>(clients_[0], make(clients_[0]));
    auto expected = Get<float>(clients_[1], make(clients_[1]));
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], tolerance) << what << " at " << i;
  }

 private:
  Daemon little_, enough_;
  std::vector<Client> clients_;
};

void ComputeAll(Pair& pair, const std::vector<float>& a_values,
                const std::vector<float>& b_values) {
  std::map<Client*, std::pair<Array, Array>> arrays;
  auto inputs = [&](Client& client) -> std::pair<Array, Array>& {
    auto found = arrays.find(&client);
    if (found != arrays.end()) return found->second;
    Array a = Must(client.Put(a_values, {kRows, kColumns}));
    Array b = Must(client.Put(b_values, {kRows, kColumns}));
    return arrays.emplace(&client, std::make_pair(std::move(a), std::move(b))).first->second;
  };
  auto a = [&](Client& client) -> const Array& { return inputs(client).first; };
  auto b = [&](Client& client) -> const Array& { return inputs(client).second; };
  EXPECT_TRUE(SameBits(Get<float>(pair.little(), a(pair.little())), a_values)) << "put and fetched";
  pair.ExpectSame<float>("cos(x)**2 + sin(x)**2", [&](Client& client) {
    return client.Expression("cos(x)**2 + sin(x)**2", {{"x", a(client)}});
  });
  pair.ExpectSame<float>("add", [&](Client& client) {
    return client.Ufunc("add", {a(client), b(client)});
  });
  pair.ExpectSame<float>("where", [&](Client& client) {
    return client.Ufunc("where", {client.Ufunc("less", {a(client), 0}), a(client), b(client)});
  });
  std::vector<float> row(b_values.begin(), b_values.begin() + kColumns);
  pair.ExpectSame<float>("multiply by a row", [&](Client& client) {
    return client.Ufunc("multiply", {a(client), Must(client.Put(row, {kColumns}))});
  });
  pair.ExpectSame<double>("in another type, transposed", [&](Client& client) {
    return client.Compute(Operation::Copy(client.Transpose(a(client)), DataType::kFloat64));
  });
  pair.ExpectSame<int64_t>("arange", [&](Client& client) { return client.Arange(10 * kMiB); });
  pair.ExpectSame<double>("linspace",
                          [&](Client& client) { return client.Linspace(0, 1, 10 * kMiB); });
  pair.ExpectSame<float>("two operations, one view", [&](Client& client) {
    Array sum = client.Ufunc("add", {a(client), 1});
    Array half = client.SliceOf(sum, {.axis = 0, .start = 10, .step = 2});
    return client.Ufunc("negative", {half});
  });
  pair.ExpectSame<float>("in place", [&](Client& client) {
    Array changed = client.Compute(Operation::Copy(b(client)));
    client.Compute(Operation::Ufunc("add", {changed, 1}).ToExisting(changed));
    Array part = client.SliceOf(changed, {.axis = 1, .start = 1, .step = 3});
    client.Compute(Operation::Ufunc("negative", {part}).ToExisting(part));
    return changed;
  });
  for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}}) {
    const double count = axes.empty() ? kRows * kColumns : axes[0] == 0 ? kRows : kColumns;
    pair.ExpectNear("sum", count * 4e-6, [&](Client& client) {
      return client.Reduce(Reduction::kSum, a(client), {.axes = axes});
    });
    pair.ExpectNear("mean", 4e-6, [&](Client& client) {
      return client.Reduce(Reduction::kMean, a(client), {.axes = axes});
    });
    pair.ExpectNear("norm", std::sqrt(count) * 1e-5, [&](Client& client) {
      return client.Reduce(Reduction::kNorm, a(client), {.axes = axes});
    });
    pair.ExpectSame<float>("max", [&](Client& client) {
      return client.Reduce(Reduction::kMax, a(client), {.axes = axes});
    });
    pair.ExpectSame<float>("min", [&](Client& client) {
      return client.Reduce(Reduction::kMin, a(client), {.axes = axes});
    });
  }
  pair.ExpectSame<int64_t>("integer sum", [&](Client& client) {
    return client.Reduce(Reduction::kSum, client.Ufunc("less", {a(client), b(client)}),
                         {.axes = {0}});
  });
  pair.ExpectSame<int64_t>("argmax along rows", [&](Client& client) {
    return client.Reduce(Reduction::kArgmax, a(client), {.axes = {1}});
  });
}

TEST_F(StreamTest, FiveTimesTheDeviceInHostMemory) {
  Pair pair(Flags(1024 * kMiB, 0));
  ComputeAll(pair, Content(1), Content(2));
}

TEST_F(StreamTest, FiveTimesTheDeviceInFiles) {
  Pair pair(Flags(32 * kMiB, 2048 * kMiB));
  ComputeAll(pair, Content(3), Content(4));
}

TEST_F(StreamTest, UnsplittableOperationIsUnimplemented) {
  Daemon daemon(Flags(512 * kMiB, 0));
  Client client = daemon.Connect();
  Array a = Must(client.Put(Content(5), {kRows, kColumns}));
  auto product = client.Fetch<float>(client.Matmul(client.Transpose(a), a));
  ASSERT_FALSE(product);
  EXPECT_TRUE(IsError(product.error(), Code::kResourceExhausted, "DEVICE_MEMORY"));
  EXPECT_THAT(product.error().message, ::testing::HasSubstr("matrix product"));
  auto place = client.Fetch<int64_t>(client.Reduce(Reduction::kArgmin, a));
  ASSERT_FALSE(place);
  EXPECT_TRUE(IsError(place.error(), Code::kResourceExhausted, "DEVICE_MEMORY"));
  EXPECT_THAT(place.error().message, ::testing::HasSubstr("reductions to an index"));
}

TEST_F(StreamTest, CancelInTheMiddleFreesEverything) {
  Daemon daemon(Flags(1024 * kMiB, 0));
  const std::string in = "tenants/default/arrays/in", out = "tenants/default/arrays/out";
  Client client = daemon.Connect();
  const std::vector<float> content = Content(6);
  Must(client.Put(content, {kRows, kColumns}, {.name = in}));
  std::string text = "x";
  for (int i = 0; i < 60; ++i) text = "sin(" + text + ") + cos(x)";
  for (bool deadline : {false, true}) {
    Array target = Must(client.Put(content, {kRows, kColumns}, {.name = out}));
    JobSpec spec;
    // Seconds of work on either device, so that a few hundred milliseconds are its middle.
    for (int i = 0; i < 4 * NumTimes(); ++i) {
      spec.operations.push_back(
          Operation::Expression(text, {{"x", Operand::Named(in)}}).ToExisting(target));
    }
    if (deadline) spec.timeout = std::chrono::milliseconds(OnCpu() ? 900 : 400);
    Job job = Must(client.CreateJob(spec));
    Must(client.WatchJob(job.name, [&](const Job& now) {
      if (now.state == Job::State::kRunning && !deadline) Must(client.CancelJob(job.name));
      job = now;
      return true;
    }));
    EXPECT_EQ(job.state, deadline ? Job::State::kFailed : Job::State::kCancelled);
    EXPECT_TRUE(client.DeleteArray(out));
  }
  // The array is unchanged, and work continues.
  EXPECT_TRUE(SameBits(Get<float>(client, client.Open(in)), content));
  EXPECT_EQ(Get<float>(client, client.Reduce(Reduction::kMax, Operand::Named(in))).size(), 1u);
  Must(client.DeleteArray(in));
  const auto begin = Clock::now();
  DeviceSample sample = Sample(client);
  while (sample.arena_bytes > 0 && Clock::now() - begin < std::chrono::seconds(20)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    sample = Sample(client);
  }
  EXPECT_EQ(sample.arena_bytes, 0);
  EXPECT_EQ(sample.queue_depth, 0);
}

// The daemon dies in the middle. An operation with a new result begins again, one that changed an
// array in place has failed, and spilled arrays are intact.
TEST_F(StreamTest, RestartBeginsTheOperationAgain) {
  std::vector<std::string> flags = Flags(2048 * kMiB, 0);
  flags.push_back("--supervise");
  Daemon daemon(flags);
  const std::string in = "tenants/default/arrays/in", out = "tenants/default/arrays/out",
                    changed = "tenants/default/arrays/changed";
  Client client = daemon.Connect();
  Must(client.Put(Content(7), {kRows, kColumns}, {.name = in}));
  Must(client.Put(Content(8), {kRows, kColumns}, {.name = changed}));
  std::string text = "x";
  for (int i = 0; i < 40; ++i) text = "sin(" + text + ") + cos(x)";
  Array target = client.Open(changed);
  JobSpec first, second;
  for (int i = 0; i < NumTimes(); ++i) {
    first.operations.push_back(
        Operation::Expression(text, {{"x", Operand::Named(changed)}}).ToExisting(target));
    second.operations.push_back(
        Operation::Expression(text, {{"x", Operand::Named(in)}}).ToName(out + std::to_string(i)));
  }
  for (bool in_place : {true, false}) {
    Job job = Must(client.CreateJob(in_place ? first : second));
    Must(client.WatchJob(job.name,
                         [&](const Job& now) { return now.state != Job::State::kRunning; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(daemon.ServingPid(), SIGKILL);
    ASSERT_TRUE(daemon.WaitReady(in_place ? 2 : 3, std::chrono::seconds(100))) << daemon.Log();
    Client again = daemon.Connect();
    Must(again.WatchJob(job.name, [&](const Job& now) {
      job = now;
      return true;
    }));
    EXPECT_EQ(job.state, in_place ? Job::State::kFailed : Job::State::kSucceeded);
    if (in_place) {
      auto bytes = again.Fetch<float>(again.Open(changed));
      ASSERT_FALSE(bytes);
      EXPECT_EQ(bytes.error().reason, "WORKER_LOST");
      continue;
    }
    auto same = Get<float>(again, again.Expression(text, {{"x", Operand::Named(in)}}));
    for (int i = 0; i < NumTimes(); ++i) {
      auto bytes = again.Fetch<float>(again.Open(out + std::to_string(i)));
      ASSERT_TRUE(bytes) << bytes.error().ToString();
      EXPECT_TRUE(SameBits(*bytes, same));
    }
    EXPECT_TRUE(SameBits(Get<float>(again, again.Open(in)), Content(7)));
  }
}

}  // namespace
}  // namespace stride::testing
