#include "server/engine/scheduling/time_slices.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kQuantum = absl::Milliseconds(20);

class TimeSlicesTest : public PartTest {
 protected:
  void Start(std::map<std::string, double> weights = {}) {
    EngineOptions options;
    options.fair_quantum = kQuantum;
    options.tenant_weight = [weights](const TenantId& tenant) {
      auto found = weights.find(tenant.value);
      return found == weights.end() ? 1.0 : found->second;
    };
    PartTest::Start({HostDevice(0)}, std::move(options));
    slices_ = std::make_unique<TimeSlices>(core_.get());
  }
  // The tenant's queue has a task to send.
  DeviceQueue& Ready(const std::string& tenant) {
    DeviceQueue& queue = QueueOf(tenant);
    if (queue.worker == nullptr) queue.worker = *broker_->StartWorker(0);
    queue.sending.ready.push_back(NewTask(queue));
    slices_->NoteDemand(queue);
    return queue;
  }
  // The queue's tasks are sent.
  void Send(DeviceQueue& queue, double expected_seconds = 0) {
    while (!queue.sending.ready.empty()) {
      queue.sending.ready.front()->sent.expected_seconds = expected_seconds;
      queue.sending.in_flight.push_back(
          {queue.sending.next_sequence++, queue.sending.ready.front(), true});
      queue.sending.ready.pop_front();
    }
    slices_->NoteDemand(queue);
  }
  // The queue's tasks have ended.
  void End(DeviceQueue& queue, double run_seconds) {
    slices_->Charge(queue, run_seconds);
    queue.sending.in_flight.clear();
    slices_->NoteDemand(queue);
  }
  // Begins due slices in a transaction of the tenant. Returns the queues whose slice began.
  std::vector<DeviceQueue*> Begin(const std::string& tenant) {
    pumped_.clear();
    In(tenant, [&](TenantTransaction& transaction) { slices_->Begin(transaction, 0); });
    return pumped_;
  }

  std::unique_ptr<TimeSlices> slices_;
};

TEST_F(TimeSlicesTest, QueueAloneHasNoBound) {
  Start();
  DeviceQueue& a = Ready("a");
  EXPECT_TRUE(std::isinf(slices_->Budget(a)));
  Send(a, 100);
  EXPECT_TRUE(std::isinf(slices_->Budget(a)));
}

TEST_F(TimeSlicesTest, OneQueueSendsAtATime) {
  Start();
  DeviceQueue& a = Ready("a");
  EXPECT_THAT(Begin("a"), ElementsAre(&a));
  DeviceQueue& b = Ready("b");
  EXPECT_GT(slices_->Budget(a), 0);
  EXPECT_EQ(slices_->Budget(b), 0);
}

TEST_F(TimeSlicesTest, TasksInFlightUseUpTheBudget) {
  Start();
  DeviceQueue& a = Ready("a");
  Begin("a");
  Ready("b");
  const double whole = slices_->Budget(a);
  Send(a, whole / 4);
  EXPECT_NEAR(slices_->Budget(a), whole * 3 / 4, 1e-9);
}

// The queue of another partition begins without the transaction that found it.
TEST_F(TimeSlicesTest, SliceBeginsInATransactionOfItsTenant) {
  Start();
  DeviceQueue& a = Ready("a");
  Begin("a");
  Send(a);
  DeviceQueue& b = Ready("b");
  ASSERT_NE(PartitionOf(a.tenant), PartitionOf(b.tenant));
  EXPECT_THAT(Begin("a"), IsEmpty());
  End(a, 0.001);
  EXPECT_THAT(Begin("a"), ElementsAre(&b));
  EXPECT_EQ(slices_->Budget(a), 0);
  EXPECT_GT(slices_->Budget(b), 0);
}

TEST_F(TimeSlicesTest, FurtherLookIsLeftInTheWorkList) {
  Start();
  Ready("a");
  devices_.clear();
  Begin("a");
  EXPECT_THAT(devices_, ElementsAre(0)) << "the queue may have nothing to send";
}

// No event comes from a long task.
TEST_F(TimeSlicesTest, TimerBeginsTheSliceAfterALongTask) {
  Start();
  DeviceQueue& a = Ready("a");
  Begin("a");
  Send(a);
  DeviceQueue& b = Ready("b");
  EXPECT_THAT(Begin("b"), IsEmpty());
  pumped_.clear();
  time_.Advance(kQuantum / 10);
  EXPECT_THAT(pumped_, IsEmpty());
  time_.Advance(2 * kQuantum);
  EXPECT_THAT(pumped_, ElementsAre(&b));
}

TEST_F(TimeSlicesTest, YieldingQueueHasNoSlice) {
  Start();
  DeviceQueue& a = Ready("a");
  DeviceQueue& b = Ready("b");
  Begin("a");
  a.worker = nullptr;  // it ended
  slices_->NoteDemand(a);
  EXPECT_THAT(Begin("b"), ElementsAre(&b));
  EXPECT_TRUE(std::isinf(slices_->Budget(b)));
}

// Tasks of 1 ms, while both tenants always have more.
TEST_F(TimeSlicesTest, WeightsDivideTheDevice) {
  Start({{"a", 3}, {"b", 1}});
  DeviceQueue& a = Ready("a");
  DeviceQueue& b = Ready("b");
  std::map<DeviceQueue*, double> seconds;
  for (int i = 0; i < 4000; ++i) {
    Begin("a");
    for (DeviceQueue* queue : {&a, &b}) {
      if (slices_->Budget(*queue) <= 0) continue;
      Send(*queue, 0.001);
      time_.Advance(absl::Milliseconds(1));
      queue->sending.ready.push_back(NewTask(*queue));
      End(*queue, 0.001);
      seconds[queue] += 0.001;
    }
  }
  EXPECT_NEAR(seconds[&a] / seconds[&b], 3, 0.2);
}

}  // namespace
}  // namespace stride::engine
