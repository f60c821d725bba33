// Placement and timing of work: spread, pinned, kept together, limited, cancelled, outliving its
// client.

#include <algorithm>

#include "gmock/gmock.h"
#include "stride/v1/array_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kSource[] = R"(
extern "C" __global__ void spin(volatile unsigned int* x, long long n) {
  for (long long i = 0; i < n; ++i) x[0] = x[0] + 1;
}
extern "C" __global__ void endless(volatile unsigned int* x) { while (x[0] != 99) {} }
)";

KernelOptions Kernel(std::string entry, std::vector<KernelArgument> arguments) {
  KernelOptions options;
  options.code = kSource;
  options.entry = std::move(entry);
  options.arguments = std::move(arguments);
  return options;
}

// Tens of milliseconds of work: a GPU takes half a microsecond to read its last write.
int64_t SpinSteps() { return OnCpu() ? 20'000'000 : 200'000; }

Operation Spin() {
  return Operation::Kernel(
      Kernel("spin", {KernelArgument::Out({DataType::kUint32, {1}}), SpinSteps()}));
}

class ScheduleTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{"--max-queued=200", "--kill-grace=100ms"}, Devices{.count = 3});
  }
  static void TearDownTestSuite() { daemon_.reset(); }

  // An array that no other operation can use until `time` is over.
  Array Blocked(milliseconds time) {
    // Compiled before, so that the time is the run's.
    Array ends = client_.Full({DataType::kUint32, {1}}, 99);
    client_.Kernel(Kernel("endless", {ends}));
    EXPECT_EQ(Get<uint32_t>(client_, ends)[0], 99u);
    Array x = client_.Zeros({DataType::kUint32, {1}});
    ComputeOptions options;
    options.timeout = time;
    client_.ComputeAll(Operation::Kernel(Kernel("endless", {x})), options);
    return x;
  }

  static inline std::unique_ptr<Daemon> daemon_;
  Client client_ = daemon_->Connect();
};

TEST_F(ScheduleTest, IndependentWorkSpreads) {
  STRIDE_NEEDS_DEVICES(3);
  std::vector<Array> results;
  for (int i = 0; i < 12; ++i)
    results.push_back(client_.Compute(Spin(), ComputeOptions{.timeline = true}));
  std::map<std::string, int> count;
  for (const Array& result : results) {
    EXPECT_THAT(Get<uint32_t>(client_, result), ElementsAre(SpinSteps()));
    const Timeline timeline = Must(result.Timeline());
    ++count[timeline.device];
    EXPECT_GT(timeline.run.count(), 0);
    EXPECT_GE(timeline.total, timeline.run);
  }
  EXPECT_THAT(count, SizeIs(3));
  for (const auto& [device, jobs] : count) EXPECT_GE(jobs, 2) << device;
}

TEST_F(ScheduleTest, PinningIsHonoured) {
  STRIDE_NEEDS_DEVICES(3);
  for (int i = 0; i < 12; ++i) {
    const std::string device = DeviceName(i % 3);
    Array result = client_.Compute(Spin().OnDevice(device), ComputeOptions{.timeline = true});
    EXPECT_EQ(Must(result.Timeline()).device, device);
    EXPECT_THAT(Must(result.Describe()).devices, ElementsAre(device));
  }
}

TEST_F(ScheduleTest, ChainStaysTogether) {
  STRIDE_NEEDS_DEVICES(3);
  for (const std::string& device : {DeviceName(1), DeviceName(2)}) {
    Array x = client_.Compute(Operation::Zeros({DataType::kFloat64, {100000}}).OnDevice(device));
    std::vector<Array> chain;
    for (int i = 0; i < 50; ++i) {
      x = client_.Compute(Operation::Ufunc("add", {x, Operand(1)}),
                          ComputeOptions{.timeline = true});
      EXPECT_EQ(Must(x.Timeline()).device, device) << i;
    }
    EXPECT_EQ(Get<double>(client_, x)[0], 50);
  }
}

TEST_F(ScheduleTest, QueueLimitReportsRetryDelay) {
  Array blocked = Blocked(seconds(2));
  std::vector<Array> waiting;
  std::optional<Error> refused;
  for (int i = 0; i < 300 && !refused; ++i) {
    waiting.push_back(client_.Ufunc("add", {blocked, Operand(i)}));
    auto spec = waiting.back().Spec();
    if (!spec) refused = spec.error();
  }
  ASSERT_TRUE(refused.has_value()) << "all were accepted";
  EXPECT_GE(waiting.size(), 190u);
  EXPECT_TRUE(IsError(*refused, Code::kResourceExhausted, "QUEUE_FULL"));
  ASSERT_TRUE(refused->retry_delay.has_value());
  EXPECT_GT(refused->retry_delay->count(), 0);
  // There is room once the block has ended.
  EXPECT_TRUE(IsError(MustFail(blocked.Wait()), Code::kDeadlineExceeded, "DEADLINE"));
  EXPECT_TRUE(Eventually([&] { return client_.Zeros({DataType::kFloat32, {1}}).Wait().ok(); }));
}

TEST_F(ScheduleTest, RunEndsAtItsDeadline) {
  Array blocked = Blocked(seconds(10));
  Must(blocked.Spec());
  CallOptions options;
  options.timeout = milliseconds(200);
  const Error error =
      MustFail(client_.Run(Operation::Ufunc("add", {blocked, Operand(1)}), options));
  EXPECT_EQ(error.code, Code::kDeadlineExceeded) << error.ToString();
  EXPECT_EQ(Must(blocked.Describe()).state, ArrayInfo::State::kPending);
}

TEST_F(ScheduleTest, CancelledRunNeverRuns) {
  Array blocked = Blocked(seconds(2));
  Must(blocked.Spec());
  auto future = client_.RunAsync(Operation::Ufunc("add", {blocked, Operand(1)}));
  EXPECT_FALSE(future.WaitFor(milliseconds(50)));
  future.Cancel();
  EXPECT_EQ(MustFail(future.Get()).code, Code::kCancelled);
}

TEST_F(ScheduleTest, SamplesCountTheWork) {
  STRIDE_NEEDS_DEVICES(3);
  Must(client_.Synchronize());
  std::map<std::string, int64_t> before, after;
  auto sample = [&](std::map<std::string, int64_t>* out) {
    Must(client_.WatchDevices({.max_samples = 1}, [&](const std::vector<DeviceSample>& samples) {
      for (const auto& one : samples) (*out)[one.device] = one.jobs_succeeded;
      return true;
    }));
  };
  sample(&before);
  for (int i = 0; i < 5; ++i) client_.Compute(Spin().OnDevice(DeviceName(2)));
  Must(client_.Synchronize());
  sample(&after);
  EXPECT_THAT(after, SizeIs(3));
  EXPECT_GE(after[DeviceName(2)], before[DeviceName(2)] + 5);
  EXPECT_EQ(after[DeviceName(0)], before[DeviceName(0)]);

  int rounds = 0;
  Must(client_.WatchDevices(
      {.devices = {DeviceName(1)}, .interval = milliseconds(50), .max_samples = 3},
      [&](const std::vector<DeviceSample>& samples) {
        EXPECT_THAT(samples, SizeIs(1));
        EXPECT_EQ(samples.at(0).device, DeviceName(1));
        EXPECT_TRUE(samples.at(0).memory_total_bytes.has_value());
        ++rounds;
        return true;
      }));
  EXPECT_EQ(rounds, 3);
}

// --- jobs ---

JobSpec TwoSteps(const std::string& result) {
  JobSpec spec;
  spec.operations.push_back(Operation::Arange(0, 1000, 1).ToJobHandle(1));
  spec.operations.push_back(
      Operation::Ufunc("multiply", {Operand::JobHandle(1), Operand(3)}).ToName(result));
  spec.label = "two steps";
  return spec;
}

TEST_F(ScheduleTest, JobIsWatchedToItsEnd) {
  const std::string name = "tenants/default/arrays/job-result";
  const Job made = Must(client_.CreateJob(TwoSteps(name)));
  std::vector<Job::State> states;
  Must(client_.WatchJob(made.name, [&](const Job& job) {
    states.push_back(job.state);
    return true;
  }));
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states.back(), Job::State::kSucceeded);
  EXPECT_TRUE(std::is_sorted(states.begin(), states.end()));
  const Job job = Must(client_.GetJob(made.name));
  EXPECT_EQ(job.label, "two steps");
  EXPECT_THAT(job.timelines, SizeIs(2));
  ASSERT_THAT(job.results, SizeIs(1));
  EXPECT_EQ(job.results[0].name, name);
  EXPECT_EQ(Get<int64_t>(client_, client_.Open(name))[999], 2997);
  Must(client_.DeleteArray(name));
  Must(client_.DeleteJob(made.name));
  EXPECT_TRUE(IsError(MustFail(client_.GetJob(made.name)), Code::kNotFound, "JOB_NOT_FOUND"));
}

TEST_F(ScheduleTest, SameRequestIdIsTheSameJob) {
  JobSpec spec = TwoSteps("tenants/default/arrays/once");
  spec.request_id = "6f1e0c9a-1d1f-4c3c-9d8e-2f4d1a9b7c55";
  const Job first = Must(client_.CreateJob(spec));
  const Job second = Must(daemon_->Connect().CreateJob(spec));
  EXPECT_EQ(first.name, second.name);
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(first.name)).final(); }));
  EXPECT_EQ(Must(client_.GetJob(first.name)).state, Job::State::kSucceeded);
  Must(client_.DeleteArray("tenants/default/arrays/once"));
}

TEST_F(ScheduleTest, JobOutlivesItsClient) {
  std::string name;
  {
    Client other = daemon_->Connect();
    JobSpec spec = TwoSteps("tenants/default/arrays/later");
    spec.operations.push_back(
        Operation::Reduce(Reduction::kSum, Operand::Named("tenants/default/arrays/later"))
            .ToName("tenants/default/arrays/later-sum"));
    name = Must(other.CreateJob(spec)).name;
  }
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(name)).final(); }));
  EXPECT_EQ(Must(client_.GetJob(name)).state, Job::State::kSucceeded);
  EXPECT_THAT(Get<int64_t>(client_, client_.Open("tenants/default/arrays/later-sum")),
              ElementsAre(3 * 999 * 1000 / 2));
  Must(client_.DeleteArray("tenants/default/arrays/later"));
  Must(client_.DeleteArray("tenants/default/arrays/later-sum"));
}

// An upload that never completes: its dependents wait, and no device has them yet.
TEST_F(ScheduleTest, CancelledJobNeverRuns) {
  const std::string input = "tenants/default/arrays/input",
                    output = "tenants/default/arrays/output";
  const Rpc rpc(daemon_->address());
  v1::PutArrayRequest half;
  half.mutable_header()->set_parent("tenants/default");
  half.mutable_header()->set_array_id("input");
  half.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  half.mutable_header()->mutable_spec()->add_shape(10);
  half.mutable_header()->mutable_range()->set_end(0);
  ASSERT_TRUE(rpc.Call("ArrayService/PutArray", half).ok());

  JobSpec queued;
  queued.operations.push_back(
      Operation::Ufunc("add", {Operand::Named(input), Operand(1)}).ToName(output));
  const Job job = Must(client_.CreateJob(queued));
  EXPECT_EQ(job.state, Job::State::kQueued);
  EXPECT_TRUE(
      IsError(MustFail(client_.DeleteJob(job.name)), Code::kFailedPrecondition, "WRONG_STATE"));
  EXPECT_EQ(Must(client_.CancelJob(job.name)).state, Job::State::kCancelled);
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<uint8_t>(client_.Open(output))), Code::kCancelled,
                      "CANCELLED"));
  // A second cancel changes nothing.
  EXPECT_EQ(Must(client_.CancelJob(job.name)).state, Job::State::kCancelled);
  Must(client_.DeleteJob(job.name));
  Must(client_.DeleteArray(input));
  Must(client_.DeleteArray(output));
}

TEST_F(ScheduleTest, JobEndsAtItsTimeout) {
  KernelOptions kernel =
      Kernel("endless", {Operand::Inline<uint32_t>(std::vector<uint32_t>{1}, {1})});
  JobSpec endless;
  endless.operations.push_back(Operation::Kernel(kernel));
  endless.timeout = milliseconds(300);
  const Job made = Must(client_.CreateJob(endless));
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(made.name)).final(); }));
  const Job job = Must(client_.GetJob(made.name));
  EXPECT_EQ(job.state, Job::State::kFailed);
  ASSERT_TRUE(job.error.has_value());
  EXPECT_TRUE(IsError(*job.error, Code::kDeadlineExceeded, "DEADLINE"));
}

// --- queued after a long run, in its worker's queue ---

// Only their transmission: the engine's tests cover their effect.
TEST_F(ScheduleTest, PrioritiesAreRefusedBeyondTheirBounds) {
  const Array x = client_.Full({DataType::kInt32, {1}}, 1);
  Array sum = client_.Compute(Operation::Ufunc("add", {x, Operand(1)}).WithPriority(10));
  EXPECT_THAT(Get<int32_t>(client_, sum), ElementsAre(2));
  sum = client_.Compute(Operation::Ufunc("add", {x, Operand(1)}).WithPriority(11));
  const Error of_operation = MustFail(client_.Fetch<int32_t>(sum));
  EXPECT_TRUE(IsError(of_operation, Code::kInvalidArgument, "INVALID_FIELD"));
  EXPECT_THAT(of_operation.ToString(), ::testing::HasSubstr("priority"));
  JobSpec spec;
  spec.priority = -11;
  spec.operations.push_back(Operation::Zeros({DataType::kInt32, {1}}).ToJobHandle(1));
  const Error of_job = MustFail(client_.CreateJob(spec));
  EXPECT_TRUE(IsError(of_job, Code::kInvalidArgument, "INVALID_FIELD"));
  EXPECT_THAT(of_job.ToString(), ::testing::HasSubstr("priority"));
}

class QueueTest : public ScheduleTest {
 protected:
  // Not the first if there are several: these must be unaffected.
  const std::string device_ = DeviceName(std::min(1, MaxDevices() - 1));

  // Begins a job of about two seconds and returns its name once it runs.
  std::string BeginFront(const std::string& result) {
    Array probe = client_.Compute(Spin().OnDevice(device_), ComputeOptions{.timeline = true});
    const double seconds = std::chrono::duration<double>(Must(probe.Timeline()).run).count();
    num_turns_ = static_cast<int64_t>(static_cast<double>(SpinSteps()) * (2 / seconds));
    JobSpec spec;
    spec.operations.push_back(
        Operation::Kernel(
            Kernel("spin", {KernelArgument::Out({DataType::kUint32, {1}}), num_turns_}))
            .ToName(result)
            .OnDevice(device_));
    const std::string name = Must(client_.CreateJob(spec)).name;
    EXPECT_TRUE(Eventually([&] { return State(name) == Job::State::kRunning; }));
    return name;
  }
  // The front ended by itself, having counted all its iterations.
  void ExpectFrontEnds(const std::string& name, const std::string& result) {
    EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(name)).final(); }));
    EXPECT_EQ(State(name), Job::State::kSucceeded);
    EXPECT_THAT(Get<uint32_t>(client_, client_.Open(result)),
                ElementsAre(static_cast<uint32_t>(num_turns_)));
    Must(client_.DeleteArray(result));
  }
  Job::State State(const std::string& name) { return Must(client_.GetJob(name)).state; }
  // Cosines: any other bits would show.
  Operation Cosine(const Array& x) { return Operation::Ufunc("cos", {x}).OnDevice(device_); }

  int64_t num_turns_ = 0;
};

TEST_F(QueueTest, CancelEndsAJobInAWorkersQueue) {
  const std::string front_result = "tenants/default/arrays/front";
  const std::string output = "tenants/default/arrays/cancelled";
  Array x = Must(client_.Put(Iota<double>(1000), {1000}));
  const std::vector<double> expected = Get<double>(client_, client_.Compute(Cosine(x)));
  JobSpec spec;
  spec.operations.push_back(Operation::Arange(0, 1000, 1).ToJobHandle(1).OnDevice(device_));
  spec.operations.push_back(Operation::Ufunc("multiply", {Operand::JobHandle(1), Operand(3)})
                                .ToName(output)
                                .OnDevice(device_));
  // Its code is compiled before, so that it enters the queue at once.
  const Job warm = Must(client_.CreateJob(spec));
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(warm.name)).final(); }));
  EXPECT_THAT(Must(client_.GetJob(warm.name)).timelines, SizeIs(2));
  Must(client_.DeleteArray(output));
  Array warm_sum = client_.Compute(
      Operation::Ufunc("add", {client_.Full({DataType::kInt64, {1}}, 1), Operand(1)}));
  Must(warm_sum.Wait());

  const std::string front = BeginFront(front_result);
  const Job job = Must(client_.CreateJob(spec));
  Array dependent = client_.Compute(
      Operation::Ufunc("add", {client_.Open(output), Operand(1)}).OnDevice(device_));
  Array independent = client_.Compute(Cosine(x));
  Must(dependent.Spec());
  EXPECT_TRUE(Eventually([&] { return State(job.name) != Job::State::kQueued; }));
  EXPECT_EQ(State(job.name), Job::State::kScheduled) << "it waits for its turn";
  Must(client_.CancelJob(job.name));
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(job.name)).final(); }));
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int64_t>(dependent)), Code::kCancelled, "CANCELLED"));
  EXPECT_EQ(State(front), Job::State::kRunning) << "all that came before the front's end";

  EXPECT_EQ(State(job.name), Job::State::kCancelled);
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int64_t>(client_.Open(output))), Code::kCancelled,
                      "CANCELLED"));
  EXPECT_EQ(Get<double>(client_, independent), expected);
  ExpectFrontEnds(front, front_result);
  Must(client_.DeleteArray(output));
}

TEST_F(QueueTest, TimeoutEndsAJobInAWorkersQueue) {
  const std::string front_result = "tenants/default/arrays/front";
  const std::string output = "tenants/default/arrays/late";
  Array x = Must(client_.Put(Iota<double>(1000), {1000}));
  const std::vector<double> expected = Get<double>(client_, client_.Compute(Cosine(x)));
  const std::string front = BeginFront(front_result);
  JobSpec spec;
  spec.operations.push_back(
      Operation::Ufunc("cos", {Operand::Inline<double>(std::vector<double>{1}, {1})})
          .ToName(output)
          .OnDevice(device_));
  spec.timeout = milliseconds(100);
  const Job job = Must(client_.CreateJob(spec));
  Array independent = client_.Compute(Cosine(x));
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(job.name)).final(); }));
  const Job ended = Must(client_.GetJob(job.name));
  EXPECT_EQ(State(front), Job::State::kRunning) << "the job ended before the front did";
  EXPECT_EQ(ended.state, Job::State::kFailed);
  ASSERT_TRUE(ended.error.has_value());
  EXPECT_TRUE(IsError(*ended.error, Code::kDeadlineExceeded, "DEADLINE"));
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<double>(client_.Open(output))),
                      Code::kDeadlineExceeded, "DEADLINE"));
  EXPECT_EQ(Get<double>(client_, independent), expected);
  ExpectFrontEnds(front, front_result);
  Must(client_.DeleteArray(output));
}

TEST_F(ScheduleTest, ValidateOnlyLeavesNothing) {
  JobSpec spec = TwoSteps("tenants/default/arrays/never");
  spec.validate_only = true;
  const size_t before = Must(client_.ListJobs()).size();
  Must(client_.CreateJob(spec));
  EXPECT_THAT(Must(client_.ListJobs()), SizeIs(before));
  EXPECT_TRUE(IsError(MustFail(client_.Open("tenants/default/arrays/never").Describe()),
                      Code::kNotFound, "ARRAY_NOT_FOUND"));
}

TEST_F(ScheduleTest, FailedJobReportsTheCause) {
  JobSpec spec = TwoSteps("tenants/default/arrays/of-failed");
  KernelOptions kernel;
  kernel.code = R"(extern "C" __global__ void fault(int* x) { *(volatile int*)64 = 1; })";
  kernel.entry = "fault";
  kernel.arguments = {Operand::Inline<int32_t>(std::vector<int32_t>{1}, {1})};
  spec.operations.push_back(Operation::Kernel(kernel));
  const Job made = Must(client_.CreateJob(spec));
  EXPECT_TRUE(Eventually([&] { return Must(client_.GetJob(made.name)).final(); }));
  const Job job = Must(client_.GetJob(made.name));
  EXPECT_EQ(job.state, Job::State::kFailed);
  ASSERT_TRUE(job.error.has_value());
  EXPECT_TRUE(IsError(*job.error, Code::kFailedPrecondition, "KERNEL_FAULT"));
  // Results before the fault exist.
  EXPECT_EQ(Get<int64_t>(client_, client_.Open("tenants/default/arrays/of-failed"))[1], 3);
  Must(client_.DeleteArray("tenants/default/arrays/of-failed"));
}

}  // namespace
}  // namespace stride::testing
