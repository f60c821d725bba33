#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class OrderTest : public DeviceTest {
 protected:
  wire::Task Increment(const DeviceArray& array) {
    v1::Operation operation = UfuncOf("add", 1);
    operation.mutable_ufunc()->add_inputs()->mutable_scalar()->set_int_value(1);
    DeviceArray output;
    // The scalar keeps its own slot.
    auto task = harness().Prepare(operation, {array, DeviceArray()}, &array, &output);
    EXPECT_TRUE(task.ok()) << task.status();
    return task.ok() ? *task : wire::Task();
  }
  DeviceArray Zero(int64_t n) {
    return harness().Put(Make(DType::kInt32, {n}, [](int64_t) { return Value(0); }));
  }
};

TEST_F(OrderTest, TasksReadEarlierWrites) {
  const DeviceArray array = Zero(10000);
  const wire::Task task = Increment(array);
  uint64_t last = 0;
  for (int i = 0; i < 3000; ++i) last = harness().Submit(task);
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const HostArray got = harness().Get(array);
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(got.At(i), Value(3000)) << i;
}

TEST_F(OrderTest, ReportsArriveOnceAndInOrder) {
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

// A GPU reports the end of a long product outside its stream, that of other tasks in the stream,
// and that of a short product with the next task.
TEST_F(OrderTest, ProductsAndOtherTasksAreReportedInOrder) {
  struct Product {
    int64_t side;
    DeviceArray output, doubled;
  };
  Product products[] = {{64, {}, {}}, {500, {}, {}}, {640, {}, {}}};
  std::vector<wire::Task> kinds;
  for (Product& one : products) {
    const DeviceArray ones = harness().Put(
        Make(DType::kFloat32, {one.side, one.side}, [](int64_t) { return Value(1); }));
    auto product = harness().Prepare(MatmulOf(), {ones, ones}, nullptr, &one.output);
    ASSERT_TRUE(product.ok()) << product.status();
    auto addition =
        harness().Prepare(UfuncOf("add", 2), {one.output, one.output}, nullptr, &one.doubled);
    ASSERT_TRUE(addition.ok()) << addition.status();
    // Three times as often as the others, so that some are consecutive.
    kinds.insert(kinds.end(), {*product, *product, *product, *addition});
  }
  wire::Task zeros;
  zeros.mutable_zero_fill()->set_arena(products[2].output.arena);
  zeros.mutable_zero_fill()->set_offset(products[2].output.offset);
  zeros.mutable_zero_fill()->set_size(products[2].side * products[2].side * sizeof(float));
  const size_t before = harness().recorder().tasks().size();
  std::vector<wire::Task> tasks = kinds;
  std::minstd_rand random(5);
  for (int i = 0; i < 200; ++i) tasks.push_back(kinds[random() % kinds.size()]);
  tasks.insert(tasks.end(), kinds.begin(), kinds.end());
  tasks.push_back(zeros);
  tasks.insert(tasks.end(), 7, kinds[4]);  // the last ones are products
  const uint64_t last = harness().SubmitAll(tasks);
  harness().device().Drain();
  const auto reports = harness().recorder().tasks();
  ASSERT_EQ(reports.size(), before + tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(reports[before + i].sequence, last + 1 - tasks.size() + i);
    EXPECT_TRUE(reports[before + i].status.ok()) << i << ": " << reports[before + i].status;
  }
  EXPECT_EQ(harness().status_page().completed_sequence.load(), static_cast<uint32_t>(last));
  for (const Product& one : products) {
    const Value sum = one.side == 640 ? Value(0) : Value(static_cast<double>(one.side));
    EXPECT_EQ(harness().Get(one.output).At(one.side * one.side - 1), sum);
    EXPECT_EQ(harness().Get(one.doubled).At(one.side * one.side - 1),
              Value(static_cast<double>(2 * one.side)));
  }
}

TEST_F(OrderTest, TasksOfOnePacketRunInOrder) {
  const DeviceArray array = Zero(3000);
  const wire::Task task = Increment(array);
  const size_t before = harness().recorder().tasks().size();
  uint64_t last = 0;
  size_t count = 0;
  // Twice each: the device reuses its packet state for another packet of the same length.
  for (size_t size = 1; size <= 40; ++size) {
    for (int round = 0; round < 2; ++round, count += size)
      last = harness().SubmitAll(std::vector<wire::Task>(size, task));
  }
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const HostArray got = harness().Get(array);
  for (int64_t i = 0; i < 3000; ++i) ASSERT_EQ(got.At(i), Value(static_cast<double>(count))) << i;
  harness().device().Drain();
  const auto tasks = harness().recorder().tasks();
  ASSERT_EQ(tasks.size(), before + count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(tasks[before + i].sequence, last - count + 1 + i);
}

// One of each: small, large enough for many blocks, without elements, refused, of another kind.
TEST_F(OrderTest, TasksOfOnePacketMayDiffer) {
  const DeviceArray small = Zero(100), large = Zero(3 << 20);
  const wire::Task on_small = Increment(small), on_large = Increment(large),
                   on_none = Increment(Zero(0));
  wire::Task refused = on_small, zeros;
  refused.mutable_elementwise()->set_module(12345);
  wire::Task outside = on_small;
  outside.mutable_elementwise()->mutable_outputs(0)->set_offset(Harness::kArenaBytes);
  zeros.mutable_zero_fill()->set_arena(small.arena);
  zeros.mutable_zero_fill()->set_offset(small.offset);
  zeros.mutable_zero_fill()->set_size(4 * 100);
  const std::vector<wire::Task> kinds = {on_small, on_large, on_none, refused, outside, zeros};
  std::minstd_rand random(3);
  for (int round = 0; round < 30; ++round) {
    const size_t before = harness().recorder().tasks().size();
    std::vector<size_t> chosen;
    std::vector<wire::Task> tasks;
    int on_each[2] = {};
    for (int i = 0; i < 24; ++i) {
      // Mostly small ones, which share packets.
      chosen.push_back(random() % 3 > 0 ? 0 : random() % kinds.size());
      tasks.push_back(kinds[chosen.back()]);
      if (chosen.back() < 2) ++on_each[chosen.back()];
      if (chosen.back() == 5) on_each[0] = 0;
    }
    const int was = static_cast<int>(harness().Get(large).At(0).real());
    if (std::count(chosen.begin(), chosen.end(), 5u) == 0)
      on_each[0] += static_cast<int>(harness().Get(small).At(0).real());
    const uint64_t last = harness().SubmitAll(tasks);
    harness().device().Drain();
    const auto reports = harness().recorder().tasks();
    ASSERT_EQ(reports.size(), before + 24);
    for (size_t i = 0; i < 24; ++i) {
      EXPECT_EQ(reports[before + i].sequence, last - 23 + i);
      EXPECT_EQ(reports[before + i].status.ok(), chosen[i] != 3 && chosen[i] != 4)
          << chosen[i] << ": " << reports[before + i].status;
    }
    EXPECT_EQ(harness().Get(small).At(99), Value(on_each[0])) << "round " << round;
    EXPECT_EQ(harness().Get(large).At((3 << 20) - 1), Value(was + on_each[1]));
    EXPECT_EQ(harness().status_page().completed_sequence.load(), static_cast<uint32_t>(last));
    EXPECT_EQ(harness().status_page().started_sequence.load(), static_cast<uint32_t>(last));
  }
}

// A device may be too far ahead to recall a task, but its reply must be true.
TEST_F(OrderTest, CancelledTaskIsRecalledOrRuns) {
  constexpr int kTries = 20;
  const wire::Task front = Increment(Zero(4 << 20));
  for (int i = 0; i < kTries; ++i) {
    const DeviceArray cancelled = Zero(100), also = Zero(100), later = Zero(100);
    harness().Submit(front);
    const uint64_t first = harness().Submit(Increment(cancelled));
    const uint64_t second = harness().Submit(Increment(also));
    const uint64_t last = harness().Submit(Increment(later));
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
    EXPECT_EQ(harness().Get(later).At(99), Value(1)) << "untouched";
    // The task has ended: too late.
    harness().device().Cancel({last});
    const auto late = harness().recorder().cancelled();
    ASSERT_EQ(late.count(last), 1u);
    EXPECT_FALSE(late.find(last)->second);
  }
}

TEST_F(OrderTest, UnknownTasksAreUnimplemented) {
  EXPECT_EQ(harness().Run(wire::Task()).code(), absl::StatusCode::kUnimplemented);
}

// Not a bound: printed for the log.
TEST_F(OrderTest, PrintsLatency) {
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
  const std::vector<wire::Task> packet(16, task);
  const auto start_packets = std::chrono::steady_clock::now();
  for (int i = 0; i < 320; ++i) last = harness().SubmitAll(packet);
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const double each_together =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_packets)
          .count() /
      (320 * 16);
  std::printf(
      "latency of one task, submission to report: median %.1f us, p99 %.1f us; in a row %.2f us "
      "each, 16 at a time %.2f us each\n",
      microseconds[1000], microseconds[1980], each, each_together);
}

}  // namespace
}  // namespace stride::conformance
