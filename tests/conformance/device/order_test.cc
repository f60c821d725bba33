#include <algorithm>
#include <chrono>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class OrderTest : public DeviceTest {
 protected:
  wire::Task Increment(const DeviceArray& array) {
    v1::Operation operation = UfuncOf("add", 1);
    operation.mutable_ufunc()->add_inputs()->mutable_scalar()->set_int_value(1);
    DeviceArray output;
    // The scalar keeps a slot of its own.
    auto task = harness().Prepare(operation, {array, DeviceArray()}, &array, &output);
    EXPECT_TRUE(task.ok()) << task.status();
    return task.ok() ? *task : wire::Task();
  }
  DeviceArray Zero(int64_t n) {
    return harness().Put(Make(DType::kInt32, {n}, [](int64_t) { return Value(0); }));
  }
};

TEST_F(OrderTest, TasksSeeWhatEarlierOnesWrote) {
  const DeviceArray array = Zero(10000);
  const wire::Task task = Increment(array);
  uint64_t last = 0;
  for (int i = 0; i < 3000; ++i) last = harness().Submit(task);
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const HostArray got = harness().Get(array);
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(got.At(i), Value(3000)) << i;
}

TEST_F(OrderTest, ReportsComeOnceAndInOrder) {
  const size_t before = harness().recorder().tasks().size();
  const uint64_t first = harness().last_sequence() + 1;
  const wire::Task good = Increment(Zero(100));
  wire::Task bad = good;
  bad.mutable_elementwise()->set_module(12345);
  for (int i = 0; i < 500; ++i) harness().Submit(i % 7 == 3 ? bad : good);
  harness().device().Drain();
  const auto tasks = harness().recorder().tasks();
  ASSERT_EQ(tasks.size(), before + 500) << "after Drain everything has been reported";
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_EQ(tasks[before + i].sequence, first + i);
    EXPECT_EQ(tasks[before + i].status.ok(), i % 7 != 3)
        << "task " << i << ": " << tasks[before + i].status;
    EXPECT_GE(tasks[before + i].run_seconds, 0);
    EXPECT_LT(tasks[before + i].run_seconds, 10);
  }
  EXPECT_EQ(harness().status_page().completed_sequence.load(),
            static_cast<uint32_t>(harness().last_sequence()));
  EXPECT_EQ(harness().status_page().started_sequence.load(),
            static_cast<uint32_t>(harness().last_sequence()));
}

// A device may be too far ahead to take a task out, but what it answers is what happens.
TEST_F(OrderTest, ACancelledTaskIsTakenOutOrRuns) {
  constexpr int kTries = 20;
  const wire::Task front = Increment(Zero(4 << 20));
  for (int i = 0; i < kTries; ++i) {
    const DeviceArray cancelled = Zero(100), also = Zero(100), behind = Zero(100);
    harness().Submit(front);
    const uint64_t first = harness().Submit(Increment(cancelled));
    const uint64_t second = harness().Submit(Increment(also));
    const uint64_t last = harness().Submit(Increment(behind));
    const std::vector<uint64_t> sequences = {first, second};
    harness().device().Cancel(sequences);
    EXPECT_TRUE(harness().recorder().AwaitTask(last).ok());
    const auto answers = harness().recorder().cancelled();
    ASSERT_EQ(answers.count(first), 1u);
    EXPECT_EQ(answers.count(second), 0u);
    const bool taken = answers.find(first)->second;
    for (uint64_t sequence : sequences) {
      const absl::Status status = harness().recorder().AwaitTask(sequence);
      EXPECT_EQ(status.code(), taken ? absl::StatusCode::kCancelled : absl::StatusCode::kOk);
    }
    EXPECT_EQ(harness().Get(cancelled).At(99), Value(taken ? 0 : 1));
    EXPECT_EQ(harness().Get(also).At(99), Value(taken ? 0 : 1));
    EXPECT_EQ(harness().Get(behind).At(99), Value(1)) << "untouched";
    // It has ended: too late.
    harness().device().Cancel({last});
    const auto late = harness().recorder().cancelled();
    ASSERT_EQ(late.count(last), 1u);
    EXPECT_FALSE(late.find(last)->second);
  }
}

TEST_F(OrderTest, UnknownTasksAreUnimplemented) {
  EXPECT_EQ(harness().Run(wire::Task()).code(), absl::StatusCode::kUnimplemented);
}

// Not a bound: printed so that a run tells it.
TEST_F(OrderTest, TellsItsLatency) {
  const wire::Task task = Increment(Zero(1000));
  std::vector<double> microseconds;
  for (int i = 0; i < 2000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(harness().Run(task).ok());
    microseconds.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  const auto start = std::chrono::steady_clock::now();
  uint64_t last = 0;
  for (int i = 0; i < 5000; ++i) last = harness().Submit(task);
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const double each =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
      5000;
  std::printf(
      "latency of one task, submission to report: median %.1f us, p99 %.1f us; in a row %.2f us "
      "each\n",
      microseconds[1000], microseconds[1980], each);
}

}  // namespace
}  // namespace stride::conformance
