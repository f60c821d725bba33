// Limits on the effect of faults and kills: no array is lost, no other work fails, no call hangs,
// no other session is affected.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"

namespace stride::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kFaults[] = R"(
#include <assert.h>
extern "C" __global__ void bad_address(int* x) { *(volatile int*)64 = 1; }
extern "C" __global__ void far_address(int* x) { x[1ll << 44] = 1; }
extern "C" __global__ void hit_trap(int* x) { __trap(); }
extern "C" __global__ void failed_assert(int* x) { assert(x[0] == 123456); }
__device__ __noinline__ int deeper(int n, volatile int* x) {
  volatile int frame[64];
  frame[n % 64] = n;
  return x[0] == -1 ? 0 : deeper(n + 1, x) + frame[n % 64];
}
extern "C" __global__ void endless_recursion(int* x) { x[0] = deeper(0, x); }
extern "C" __global__ void divide_by_zero(int* x) { x[1] = x[1] / x[0]; }
extern "C" __global__ void endless_loop(volatile int* x) { while (x[0] != -1) {} }
extern "C" __global__ void plus_one(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
)";

KernelOptions Launch(std::string entry, std::vector<KernelArgument> arguments, uint32_t blocks = 1,
                     uint32_t threads = 1) {
  KernelOptions options;
  options.code = kFaults;
  options.entry = std::move(entry);
  options.grid = {blocks};
  options.block = {threads};
  options.arguments = std::move(arguments);
  return options;
}

// Clock ticks of processor time.
int64_t BusyTicks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  if (stat.rfind(')') == std::string::npos) return -1;
  std::istringstream rest(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  int64_t user = 0, system = 0;
  rest >> user >> system;
  return user + system;
}

// The worker that an endless kernel keeps busy. On a GPU it polls for the kernel's end all the
// time.
pid_t BusyWorker(const Daemon& daemon) {
  // A process that starts to use a GPU is busy too, for half a second.
  if (!OnCpu()) std::this_thread::sleep_for(std::chrono::seconds(2));
  std::map<pid_t, int64_t> before;
  for (pid_t pid : daemon.Workers()) before[pid] = BusyTicks(pid);
  pid_t busy = -1;
  Eventually([&] {
    for (pid_t pid : daemon.Workers()) {
      auto [it, added] = before.emplace(pid, BusyTicks(pid));
      if (BusyTicks(pid) - it->second >= 20) busy = pid;
    }
    return busy > 0;
  });
  return busy;
}

class FaultTest : public ::testing::Test {
 protected:
  // An array that endless_loop never releases, and a daemon that has compiled it: short timeouts
  // then apply to its run.
  Array LoopArray() {
    Array ends = client_.Full({DataType::kInt32, {1}}, -1);
    client_.Kernel(Launch("endless_loop", {ends}));
    EXPECT_EQ(Get<int32_t>(client_, ends)[0], -1);
    return client_.Zeros({DataType::kInt32, {4}});
  }

  Daemon daemon_{{"--kill-grace=200ms"}};
  Client client_ = daemon_.Connect();
  Client other_ = daemon_.Connect();
};

struct Fault {
  const char* entry;
  const char* text;  // a part of the message
};

std::vector<Fault> Faults() {
  std::vector<Fault> faults = {
      {"bad_address", "illegal memory access"},
      {"far_address", "illegal memory access"},
      {"hit_trap", "trap"},
      {"failed_assert", "assert"},
      // A GPU distinguishes a full stack from a bad address, and its division by zero is no fault.
      {"endless_recursion", OnCpu() ? "memory access" : ""},
  };
  if (OnCpu()) faults.push_back({"divide_by_zero", "division by zero"});
  return faults;
}

TEST_F(FaultTest, EveryFaultFailsOnlyItsJob) {
  const auto data = Iota<int32_t>(100000);
  Array kept = Must(client_.Put(data, {100000}));
  Array others = Must(other_.Put(data, {100000}));
  Array derived = client_.Ufunc("add", {kept, Operand(1)});
  for (const Fault& fault : Faults()) {
    SCOPED_TRACE(fault.entry);
    Array before = client_.Ufunc("add", {kept, Operand(2)});
    Array victim = client_.Zeros({DataType::kInt32, {16}});
    client_.Kernel(Launch(fault.entry, {victim}));
    Array after = client_.Ufunc("add", {kept, Operand(3)});
    Array of_other = other_.Ufunc("add", {others, Operand(4)});
    Array spoiled = client_.Ufunc("add", {victim, Operand(1)});

    for (const Array* array : {&victim, &spoiled}) {
      const Error error = MustFail(client_.Fetch<int32_t>(*array));
      EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
      EXPECT_THAT(error.message, HasSubstr(fault.text));
      EXPECT_THAT(error.message, HasSubstr(fault.entry));
      EXPECT_THAT(error.message, HasSubstr("its arguments: int32["));
    }
    EXPECT_EQ(Get<int32_t>(client_, before)[99999], 100001);
    EXPECT_EQ(Get<int32_t>(client_, after)[99999], 100002);
    EXPECT_EQ(Get<int32_t>(other_, of_other)[99999], 100003);
  }
  EXPECT_EQ(Get<int32_t>(client_, kept), data);
  EXPECT_EQ(Get<int32_t>(other_, others), data);
  EXPECT_EQ(Get<int32_t>(client_, derived)[0], 1);
}

constexpr char kSilentFaults[] = R"(
#include <assert.h>
__device__ int total;
extern "C" __global__ void count(int n) { atomicAdd(&total, n); }
extern "C" __global__ void bad_address(int n) { *(volatile int*)64 = n; }
extern "C" __global__ void bad_total(int n) { *(volatile int*)(64 + 0 * atomicAdd(&total, n)) = n; }
extern "C" __global__ void hit_trap(int n) { if (n > 0) __trap(); }
extern "C" __global__ void failed_assert(int n) { assert(n == 123456); }
extern "C" __global__ void only_reads(const int* x, int n) { if (x[0] < n) *(volatile int*)64 = n; }
)";

// No array can carry the error of such a kernel. A wait for the session's work reports it once, and
// no other call does.
TEST_F(FaultTest, KernelsThatWriteNoArrayFailTheNextSynchronize) {
  const auto data = Iota<int32_t>(1000);
  Array kept = Must(client_.Put(data, {1000}));
  auto launch = [](const char* entry, std::vector<KernelArgument> arguments = {1}) {
    KernelOptions options = Launch(entry, std::move(arguments));
    options.code = kSilentFaults;
    return options;
  };
  other_.Kernel(launch("count"));
  Must(other_.Synchronize());
  for (const char* entry :
       {"bad_address", "bad_total", "hit_trap", "failed_assert", "only_reads"}) {
    SCOPED_TRACE(entry);
    const bool reads = std::string(entry) == "only_reads";
    // As the only work, and among the work of its own and other sessions.
    for (const int num_others : {0, 20}) {
      std::vector<Array> of_other;
      for (int i = 0; i < num_others; ++i) {
        client_.Kernel(launch("count"));
        of_other.push_back(other_.Full({DataType::kInt32, {1}}, i));
      }
      client_.Kernel(reads ? launch(entry, {kept, 1}) : launch(entry));
      for (int i = 0; i < num_others; ++i) {
        client_.Kernel(launch("count"));
        other_.Kernel(launch("count"));
      }
      auto synchronized = client_.Synchronize();
      ASSERT_FALSE(synchronized.ok());
      EXPECT_TRUE(IsError(synchronized.error(), Code::kFailedPrecondition, "KERNEL_FAULT"));
      EXPECT_THAT(synchronized.error().message, HasSubstr(entry));
      Must(client_.Synchronize());
      Must(other_.Synchronize());
      for (int i = 0; i < num_others; ++i) EXPECT_EQ(Get<int32_t>(other_, of_other[i])[0], i);
    }
    // A separate call returns its error.
    EXPECT_TRUE(IsError(
        MustFail(client_.Run(Operation::Kernel(reads ? launch(entry, {kept, 1}) : launch(entry)))),
        Code::kFailedPrecondition, "KERNEL_FAULT"));
  }
  EXPECT_EQ(Get<int32_t>(client_, kept), data);
}

// A fault does not invalidate the kernel's read-only inputs.
TEST_F(FaultTest, ConstArgumentSurvivesTheFault) {
  KernelOptions launch = Launch("reads_and_faults", {});
  launch.code = R"(extern "C" __global__ void reads_and_faults(const int* x, int* y) {
    y[0] = x[0]; *(volatile int*)64 = 1; })";
  const auto data = Iota<int32_t>(1000);
  Array x = Must(client_.Put(data, {1000}));
  launch.arguments = {x, KernelArgument::Out({DataType::kInt32, {1}})};
  auto out = client_.Kernel(launch);
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int32_t>(out.at(0))), Code::kFailedPrecondition,
                      "KERNEL_FAULT"));
  EXPECT_EQ(Get<int32_t>(client_, x), data);
}

// Errors propagate down a long chain without harming the daemon.
TEST_F(FaultTest, LongChainAfterAFault) {
  Array x = LoopArray();
  client_.Kernel(Launch("endless_loop", {x}));
  // No task of it can run before the loop is ended.
  constexpr int kLength = 50000;
  Array last = client_.Ufunc("add", {x, Operand(1)});
  for (int i = 1; i < kLength; ++i) last = client_.Ufunc("add", {last, Operand(1)});
  Must(last.Spec());  // all are accepted
  const pid_t busy = BusyWorker(daemon_);
  ASSERT_GT(busy, 0);
  kill(busy, SIGKILL);
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int32_t>(last)), Code::kAborted, "WORKER_LOST"));
  EXPECT_EQ(Get<int32_t>(other_, other_.Zeros({DataType::kInt32, {1}}))[0], 0);
}

TEST_F(FaultTest, EndlessLoopIsKilledAfterItsTimeout) {
  const auto data = Iota<int32_t>(1000);
  Array kept = Must(client_.Put(data, {1000}));
  Array x = LoopArray();
  ComputeOptions options;
  options.timeout = milliseconds(300);
  const auto begin = std::chrono::steady_clock::now();
  client_.ComputeAll(Operation::Kernel(Launch("endless_loop", {x})), options);
  Array next = client_.Ufunc("add", {kept, Operand(1)});
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int32_t>(x)), Code::kDeadlineExceeded, "DEADLINE"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(Get<int32_t>(client_, next)[999], 1000);
  EXPECT_EQ(Get<int32_t>(client_, kept), data);
}

// A call into a library cannot be interrupted: its worker is ended. The other session has work of
// every kind in that worker, whose memory, code and queue are lost with it.
class LibraryCallTest : public FaultTest {
 protected:
  void SetUp() override {
    // It takes seconds; the grace is a fraction of one.
    const int64_t extent = OnCpu() ? 3000 : 10000;
    std::vector<double> values(extent * extent);
    std::mt19937 random(1);
    for (double& value : values) value = static_cast<double>(random() % 1000) - 500;
    matrix_ = Must(owner_->Put(values, {extent, extent}));
    in_place_ = Must(other_.Put(data_, {static_cast<int64_t>(data_.size())}));
    kept_ = Must(other_.Put(data_, {static_cast<int64_t>(data_.size())}));
  }

  KernelOptions Increment(const Array& x) {
    KernelOptions options = Launch("increment", {x, static_cast<int32_t>(data_.size())}, 40, 256);
    options.code = R"(extern "C" __global__ void increment(int* x, int n) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) ++x[i];
    })";
    return options;
  }

  // Work before and after the call that `begin` starts and `end` waits for.
  void WithConcurrentWork(const std::function<void()>& begin, const std::function<void()>& end) {
    other_.Kernel(Increment(in_place_));
    Array before = other_.Ufunc("add", {in_place_, Operand(1)});
    std::atomic<bool> ended{false};
    std::thread transfers([&] {
      do {
        Array array = Must(other_.Put(data_, {static_cast<int64_t>(data_.size())}));
        EXPECT_EQ(Get<int32_t>(other_, array), data_);
      } while (!ended);
    });
    // A failure throws: the thread ends first.
    const absl::Cleanup join = [&] {
      ended = true;
      transfers.join();
    };
    begin();
    for (int i = 0; i < 5; ++i) other_.Kernel(Increment(in_place_));
    Array derived = other_.Ufunc("add", {kept_, Operand(5)});
    // Its first kernel: it must be compiled and loaded.
    KernelOptions first = Increment(derived);
    first.code += "// another\n";
    other_.Kernel(first);
    end();
    std::vector<int32_t> want = data_;
    for (int32_t& value : want) value += 6;
    EXPECT_EQ(Get<int32_t>(other_, in_place_), want);
    EXPECT_EQ(Get<int32_t>(other_, derived), want);
    for (int32_t& value : want) value -= 4;
    EXPECT_EQ(Get<int32_t>(other_, before), want);
    EXPECT_EQ(Get<int32_t>(other_, kept_), data_);
    Must(other_.Synchronize());
  }

  std::optional<Client> owner_ = daemon_.Connect();
  const std::vector<int32_t> data_ = Iota<int32_t>(1 << 20);
  Array matrix_, in_place_, kept_;
};

TEST_F(LibraryCallTest, DeadlineAffectsNoOtherSession) {
  std::vector<Array> results;
  WithConcurrentWork(
      [&] {
        ComputeOptions options;
        options.timeout = milliseconds(500);
        results = owner_->ComputeAll(Operation::Svd(matrix_), options);
      },
      [&] {
        for (const Array& result : results) {
          EXPECT_TRUE(IsError(MustFail(owner_->Fetch<double>(result)), Code::kDeadlineExceeded,
                              "DEADLINE"));
        }
      });
}

TEST_F(LibraryCallTest, CancelAffectsNoOtherSession) {
  std::optional<Future<RunReply>> reply;
  WithConcurrentWork(
      [&] {
        LinalgOptions options;
        options.values_only = true;
        reply = owner_->RunAsync(Operation::Svd(matrix_, options));
      },
      [&] {
        ASSERT_GT(BusyWorker(daemon_), 0);
        reply->Cancel();
        EXPECT_EQ(MustFail(reply->Get()).code, Code::kCancelled);
      });
}

TEST_F(FaultTest, DeadlineEndsOnlyTheQueuedJob) {
  Array x = LoopArray();
  ComputeOptions loop_options, queued_options;
  loop_options.timeout = std::chrono::seconds(5);
  queued_options.timeout = milliseconds(200);
  client_.ComputeAll(Operation::Kernel(Launch("endless_loop", {x})), loop_options);
  Array queued = client_.Compute(Operation::Ufunc("add", {x, Operand(1)}), queued_options);
  const Error error = MustFail(client_.Fetch<int32_t>(queued));
  EXPECT_TRUE(IsError(error, Code::kDeadlineExceeded, "DEADLINE"));
  EXPECT_THAT(error.message, HasSubstr("before the operation ran"));
  EXPECT_EQ(Must(x.Describe()).state, ArrayInfo::State::kPending)
      << "the loop goes on, to its own end";
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int32_t>(x)), Code::kDeadlineExceeded, "DEADLINE"));
}

TEST_F(FaultTest, LossOfAWorkerIsLogged) {
  Array victim = client_.Zeros({DataType::kInt32, {16}});
  client_.Kernel(Launch("bad_address", {victim}));
  EXPECT_TRUE(
      IsError(MustFail(client_.Fetch<int32_t>(victim)), Code::kFailedPrecondition, "KERNEL_FAULT"));
  EXPECT_TRUE(daemon_.WaitForLog(
      "worker lost: device=" + DeviceName(0) + " tenant=default operation=bad_address cause=",
      std::chrono::seconds(100)))
      << daemon_.Log();
}

TEST_F(FaultTest, KilledWhileIdle) {
  const auto data = Iota<int64_t>(100000);
  Array x = Must(client_.Put(data, {100000}));
  Array y = client_.Ufunc("multiply", {x, Operand(3)});
  EXPECT_EQ(Get<int64_t>(client_, y)[99999], 3 * 99999);
  for (int i = 0; i < 5; ++i) {
    // Also spares.
    for (pid_t pid : daemon_.Workers()) kill(pid, SIGKILL);
    Array z = client_.Ufunc("subtract", {y, x});
    EXPECT_EQ(Get<int64_t>(client_, z)[99999], 2 * 99999);
  }
  EXPECT_EQ(Get<int64_t>(client_, x), data);
}

// Before any request for it: the next tenant's first job would wait for a process.
TEST_F(FaultTest, DeadSpareIsReplaced) {
  std::set<pid_t> dead;
  for (int i = 0; i < 4; ++i) {
    std::vector<pid_t> living;
    ASSERT_TRUE(Eventually([&] {
      living = daemon_.Workers();
      return !living.empty() &&
             std::none_of(living.begin(), living.end(), [&](pid_t pid) { return dead.count(pid); });
    })) << "after "
        << i;
    // Until it is ready: a spare that dies earlier is started again by the broker.
    std::this_thread::sleep_for(std::chrono::milliseconds(OnCpu() ? 300 : 1500));
    for (pid_t pid : daemon_.Workers()) {
      kill(pid, SIGKILL);
      dead.insert(pid);
    }
  }
}

TEST_F(FaultTest, KilledWhileRunning) {
  const auto data = Iota<int32_t>(100000);
  Array kept = Must(client_.Put(data, {100000}));
  Array x = LoopArray();
  client_.Kernel(Launch("endless_loop", {x}));
  std::vector<Array> later;
  for (int i = 0; i < 20; ++i) later.push_back(client_.Ufunc("add", {kept, Operand(i)}));
  Array of_other = other_.Full({DataType::kInt32, {3}}, 5);
  const pid_t busy = BusyWorker(daemon_);
  ASSERT_GT(busy, 0);
  kill(busy, SIGKILL);
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int32_t>(x)), Code::kAborted, "WORKER_LOST"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Get<int32_t>(client_, later[i])[1], 1 + i);
  EXPECT_EQ(Get<int32_t>(other_, of_other), std::vector<int32_t>(3, 5));
  EXPECT_EQ(Get<int32_t>(client_, kept), data);
}

TEST_F(FaultTest, KilledWhileUploading) {
  std::vector<int64_t> data = Iota<int64_t>(4 << 20);
  std::atomic<int64_t> moved = 0;
  std::atomic<bool> stop = false;
  std::thread killer([&] {
    int64_t seen = 0;
    while (!stop) {
      // Again after each further MiB.
      if (moved - seen < (1 << 20)) {
        std::this_thread::yield();
        continue;
      }
      seen = moved;
      for (pid_t pid : daemon_.Workers()) kill(pid, SIGKILL);
      // Not again while the next one starts, see LongestPause.
      if (!OnCpu()) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  });
  PutOptions options;
  options.progress = [&](int64_t bytes) { moved += bytes; };
  auto array = client_.Put(data, {4 << 20}, options);
  stop = true;
  killer.join();
  ASSERT_TRUE(array.ok()) << array.error().ToString();
  EXPECT_EQ(Get<int64_t>(client_, *array), data);
  EXPECT_EQ(Get<int64_t>(client_, client_.Ufunc("add", {*array, Operand(1)}))[12345], 12346);
}

// A killed compiler is replaced and the source tried again, but not for ever.
TEST_F(FaultTest, CompilersKilledWhileCompiling) {
  // A million template instances: minutes of work.
  KernelOptions slow = Launch("slow", {});
  slow.code = R"(
    template <int N, long long M> struct Tree {
      static const int value = Tree<N - 1, 2 * M>::value + Tree<N - 1, 2 * M + 1>::value;
    };
    template <long long M> struct Tree<0, M> { static const int value = M & 1; };
    extern "C" __global__ void slow(int* x) { x[0] = Tree<22, 1>::value; })";
  slow.arguments = {KernelArgument::Out({DataType::kInt32, {1}})};
  auto out = client_.Kernel(slow);
  Array kept = client_.Full({DataType::kInt32, {10}}, 9);
  // Its own compiler is done: a busy one from now on belongs to the slow source.
  EXPECT_EQ(Get<int32_t>(client_, kept), std::vector<int32_t>(10, 9));
  std::set<pid_t> killed;
  ASSERT_TRUE(Eventually([&] {
    for (pid_t pid : daemon_.Compilers()) {
      if (BusyTicks(pid) > 30 && killed.insert(pid).second) kill(pid, SIGKILL);
    }
    return killed.size() == 3;
  }));
  const Error error = MustFail(client_.Fetch<int32_t>(out.at(0)));
  EXPECT_TRUE(IsError(error, Code::kAborted, "WORKER_LOST"));
  EXPECT_THAT(error.message, HasSubstr("compiler"));
  EXPECT_EQ(Get<int32_t>(client_, kept), std::vector<int32_t>(10, 9));
  Array next = client_.Expression("x * 17 + 4", {{"x", kept}});
  EXPECT_EQ(Get<int32_t>(client_, next)[0], 157);
}

// Number of kills of the drill: $STRIDE_TEST_KILLS, or 30.
int KillsWanted() {
  const char* given = std::getenv("STRIDE_TEST_KILLS");
  return given != nullptr ? std::max(1, std::atoi(given)) : 30;
}

// The longest pause between two kills: most workers have begun to work by then. A worker that uses
// a GPU needs half a second. A device whose workers die four times in a row during their start is
// suspended.
milliseconds LongestPause() { return milliseconds(OnCpu() ? 120 : 1500); }

// Kills at random times under work of three sessions, over two devices if there are two.
class KillTest : public ::testing::Test {
 protected:
  // One round of work in a session; returns the number of results lost to a kill.
  int Round(Client& client, const Array& base, const std::vector<int64_t>& data, int seed);

  Daemon daemon_{{}, {.count = 2}};
};

// True: the array is correct. False: a kill ended the work that made it.
bool IsWhole(Client& client, const Array& array, const std::vector<int64_t>& want) {
  auto got = client.Fetch<int64_t>(array);
  if (!got) {
    EXPECT_TRUE(IsError(got.error(), Code::kAborted, "WORKER_LOST"));
    return false;
  }
  EXPECT_TRUE(*got == want) << "wrong content";
  return true;
}

int KillTest::Round(Client& client, const Array& base, const std::vector<int64_t>& data, int seed) {
  const int64_t size = data.size();
  auto plus = [&](int64_t addend) {
    auto out = data;
    for (auto& value : out) value += addend;
    return out;
  };
  int lost = 0;
  // Uploaded, changed in place with copies between, and read.
  Array fresh = Must(client.Put(data, {size}));
  std::vector<Array> copies;
  constexpr int kCopies = 12;
  for (int i = 0; i < kCopies; ++i) {
    copies.push_back(client.Compute(Operation::Copy(fresh)));
    client.Compute(Operation::Ufunc("add", {fresh, Operand(1)}).ToExisting(fresh));
  }
  Array chain = client.Ufunc("add", {base, Operand(seed)});
  for (int i = 0; i < 10; ++i) chain = client.Ufunc("add", {chain, Operand(1)});
  KernelOptions kernel;
  kernel.code = R"(extern "C" __global__ void twice(const long long* x, long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; })";
  kernel.entry = "twice";
  kernel.grid = {uint32_t(size / 256)};
  kernel.block = {256};
  kernel.arguments = {base, KernelArgument::Out({DataType::kInt64, {size}}), size};
  auto twice = client.Kernel(kernel);
  auto doubled = data;
  for (auto& value : doubled) value *= 2;

  lost += !IsWhole(client, chain, plus(seed + 10));
  lost += !IsWhole(client, twice.at(0), doubled);
  lost += !IsWhole(client, fresh, plus(kCopies));
  for (int i = 0; i < kCopies; ++i) lost += !IsWhole(client, copies[i], plus(i));
  return lost;
}

TEST_F(KillTest, ManyKillsUnderLoad) {
  const int wanted = KillsWanted();
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0, lost = 0;
  std::vector<std::thread> sessions;
  for (int s = 0; s < 3; ++s) {
    sessions.emplace_back([&, s] {
      // An exception in a thread would end the program without a message.
      try {
        Client client = daemon_.Connect();
        std::mt19937_64 random(s);
        std::vector<int64_t> data(1 << 18);
        for (auto& value : data) value = static_cast<int32_t>(random());
        Array base = Must(client.Put(data, {1 << 18}));
        for (int round = 0; !stop || round < 2; ++round) {
          lost += Round(client, base, data, round);
          ++rounds;
        }
        EXPECT_TRUE(Get<int64_t>(client, base) == data) << "an array that nobody wrote changed";
      } catch (const std::exception& error) {
        ADD_FAILURE() << "session " << s << ": " << error.what();
      }
    });
  }
  std::mt19937 random(7);
  int kills = 0;
  const bool enough = Eventually(
      [&] {
        // Any time is suitable: the test must hold at each.
        std::this_thread::sleep_for(milliseconds(random() % LongestPause().count()));
        const auto workers = daemon_.Workers();
        if (!workers.empty() && kill(workers[random() % workers.size()], SIGKILL) == 0) ++kills;
        return kills >= wanted;
      },
      std::chrono::seconds(30) + wanted * LongestPause());
  stop = true;
  for (auto& session : sessions) session.join();
  EXPECT_TRUE(enough) << "only " << kills << " kills";
  // A kill fails at most the one job that ran. A lost change in place also fails what was made of
  // the array later.
  EXPECT_LE(lost, kills * 13);
  RecordProperty("kills", kills);
  RecordProperty("rounds", rounds);
  RecordProperty("lost", lost);
  std::printf("measured: %s: %d kills under load, %d rounds of work, %d results lost to them\n",
              DeviceKind().c_str(), kills, rounds.load(), lost.load());
}

}  // namespace
}  // namespace stride::testing
