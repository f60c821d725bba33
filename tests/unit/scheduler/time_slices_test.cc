#include "server/scheduler/time_slices.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "tests/unit/scheduler/part_test.h"

namespace stride::scheduler {
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
  Lane& Ready(const std::string& tenant) {
    Lane& lane = LaneOf(tenant);
    if (lane.worker == nullptr) lane.worker = *broker_->StartWorker(0);
    lane.ready.push_back(NewTask(lane));
    slices_->NoteDemand(lane);
    return lane;
  }
  // The queue's tasks are sent.
  void Send(Lane& lane, double expected_seconds = 0) {
    while (!lane.ready.empty()) {
      lane.ready.front()->expected_seconds = expected_seconds;
      lane.in_flight.push_back({lane.next_sequence++, lane.ready.front(), true});
      lane.ready.pop_front();
    }
    slices_->NoteDemand(lane);
  }
  // The queue's tasks have ended.
  void End(Lane& lane, double run_seconds) {
    slices_->Charge(lane, run_seconds);
    lane.in_flight.clear();
    slices_->NoteDemand(lane);
  }
  // Begins due slices in a transaction of the tenant. Returns the queues whose slice began.
  std::vector<Lane*> Begin(const std::string& tenant) {
    pumped_.clear();
    In(tenant, [&](TenantTransaction& transaction) { slices_->Begin(transaction, 0); });
    return pumped_;
  }

  std::unique_ptr<TimeSlices> slices_;
};

TEST_F(TimeSlicesTest, QueueAloneHasNoBound) {
  Start();
  Lane& a = Ready("a");
  EXPECT_TRUE(std::isinf(slices_->Budget(a)));
  Send(a, 100);
  EXPECT_TRUE(std::isinf(slices_->Budget(a)));
}

TEST_F(TimeSlicesTest, OneQueueSendsAtATime) {
  Start();
  Lane& a = Ready("a");
  EXPECT_THAT(Begin("a"), ElementsAre(&a));
  Lane& b = Ready("b");
  EXPECT_GT(slices_->Budget(a), 0);
  EXPECT_EQ(slices_->Budget(b), 0);
}

TEST_F(TimeSlicesTest, TasksInFlightUseUpTheBudget) {
  Start();
  Lane& a = Ready("a");
  Begin("a");
  Ready("b");
  const double whole = slices_->Budget(a);
  Send(a, whole / 4);
  EXPECT_NEAR(slices_->Budget(a), whole * 3 / 4, 1e-9);
}

// The queue of another partition begins without the transaction that found it.
TEST_F(TimeSlicesTest, SliceBeginsInATransactionOfItsTenant) {
  Start();
  Lane& a = Ready("a");
  Begin("a");
  Send(a);
  Lane& b = Ready("b");
  ASSERT_NE(StripeOf(a.tenant), StripeOf(b.tenant));
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
  Lane& a = Ready("a");
  Begin("a");
  Send(a);
  Lane& b = Ready("b");
  EXPECT_THAT(Begin("b"), IsEmpty());
  pumped_.clear();
  time_.Advance(kQuantum / 10);
  EXPECT_THAT(pumped_, IsEmpty());
  time_.Advance(2 * kQuantum);
  EXPECT_THAT(pumped_, ElementsAre(&b));
}

TEST_F(TimeSlicesTest, YieldingQueueHasNoSlice) {
  Start();
  Lane& a = Ready("a");
  Lane& b = Ready("b");
  Begin("a");
  a.worker = nullptr;  // it ended
  slices_->NoteDemand(a);
  EXPECT_THAT(Begin("b"), ElementsAre(&b));
  EXPECT_TRUE(std::isinf(slices_->Budget(b)));
}

// Tasks of 1 ms, while both tenants always have more.
TEST_F(TimeSlicesTest, WeightsDivideTheDevice) {
  Start({{"a", 3}, {"b", 1}});
  Lane& a = Ready("a");
  Lane& b = Ready("b");
  std::map<Lane*, double> seconds;
  for (int i = 0; i < 4000; ++i) {
    Begin("a");
    for (Lane* lane : {&a, &b}) {
      if (slices_->Budget(*lane) <= 0) continue;
      Send(*lane, 0.001);
      time_.Advance(absl::Milliseconds(1));
      lane->ready.push_back(NewTask(*lane));
      End(*lane, 0.001);
      seconds[lane] += 0.001;
    }
  }
  EXPECT_NEAR(seconds[&a] / seconds[&b], 3, 0.2);
}

}  // namespace
}  // namespace stride::scheduler
