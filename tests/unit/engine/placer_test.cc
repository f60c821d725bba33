#include "server/engine/scheduling/placer.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "server/base/error.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;

class PlacerTest : public PartTest {
 protected:
  PlacerTest() {
    EngineOptions options;
    options.health.interval = absl::Hours(1);
    Start({HostDevice(0), HostDevice(1)}, std::move(options));
    health_ = std::make_unique<HealthWatch>(
        core_.get(), HealthWatch::Hooks{[](GlobalTransaction&, int) {},
                                        [](GlobalTransaction&, int) { return false; },
                                        [](GlobalTransaction&, int) {}});
    placer_ = std::make_unique<Placer>(core_.get(), health_.get());
  }
  void TearDown() override {
    health_->Stop();
    PartTest::TearDown();
  }

  DeviceQueue& FirstLane(TenantTransaction& transaction) {
    return queues_->Get(transaction, TenantId{"t"}, 0);
  }
  int Choose(const Task& task) {
    TenantTransaction transaction(*core_, task.tenant);
    return placer_->Choose(transaction, task);
  }
  void Break(int device) {
    InAll([&](GlobalTransaction& transaction) { health_->Broke(transaction, device, "test"); });
  }
  // Work without end on the device.
  std::shared_ptr<Task> Occupy(int device, double seconds) {
    DeviceQueue& queue = QueueOf("busy", device);
    auto task = NewTask(queue);
    In("busy", [&](TenantTransaction& transaction) {
      placer_->Ran(transaction, *task, queue, seconds);
      placer_->Enter(transaction, *task, queue);
    });
    return task;
  }

  std::unique_ptr<HealthWatch> health_;
  std::unique_ptr<Placer> placer_;
};

TEST_F(PlacerTest, EqualDevicesTakeTurns) {
  auto task = NewTask(QueueOf("t"));
  std::set<int> devices;
  for (int i = 0; i < 2; ++i) devices.insert(Choose(*task));
  EXPECT_EQ(devices, (std::set<int>{0, 1}));
}

TEST_F(PlacerTest, TaskGoesToTheShorterQueue) {
  Occupy(0, 1.0);
  auto task = NewTask(QueueOf("t"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Choose(*task), 1);
}

TEST_F(PlacerTest, TaskGoesToItsLargeInput) {
  auto buffer = NewBuffer("t", int64_t{1} << 30);
  buffer->AddReplica(1, {});
  auto task = NewTask(QueueOf("t"), {Use{.buffer = buffer, .read = true}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Choose(*task), 1);
}

// An output that the task makes whole needs no copy.
TEST_F(PlacerTest, OverwrittenOutputIsNotMoved) {
  auto buffer = NewBuffer("t", int64_t{1} << 30);
  buffer->AddReplica(1, {});
  auto task = NewTask(QueueOf("t"), {Use{.buffer = buffer, .write = true, .fresh = true}});
  EXPECT_NE(Choose(*task), Choose(*task));
}

TEST_F(PlacerTest, MeasuredRunTimeDecides) {
  auto task = NewTask(QueueOf("t"));
  In("t", [&](TenantTransaction& transaction) {
    placer_->Ran(transaction, *task, FirstLane(transaction), 5.0);
    EXPECT_DOUBLE_EQ(placer_->ExpectedSeconds(transaction, *task, FirstLane(transaction)), 5.0);
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Choose(*task), 1);
}

TEST_F(PlacerTest, PinnedTaskHasOneDevice) {
  Occupy(1, 100);
  auto task = NewTask(QueueOf("t"));
  task->options.pinned_device = 1;
  EXPECT_EQ(Choose(*task), 1);
  EXPECT_FALSE(placer_->Fits(*task, 0));
}

TEST_F(PlacerTest, NoTaskGoesToAnIllDevice) {
  auto task = NewTask(QueueOf("t"));
  Break(0);
  EXPECT_FALSE(placer_->Fits(*task, 0));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Choose(*task), 1);
  Break(1);
  EXPECT_EQ(Choose(*task), -1);
  const absl::Status reason = placer_->NoDeviceFor(*task);
  EXPECT_TRUE(absl::IsUnavailable(reason)) << reason;
  EXPECT_EQ(ReasonOf(reason), v1::ERROR_REASON_DEVICE_NOT_SERVING);
  EXPECT_EQ(MetadataOf(reason, "device"), "devices/cpu:0");
}

TEST_F(PlacerTest, CodeForAnAbsentKindNamesTheKind) {
  ops::Plan plan;
  plan.required_kind = "cuda";
  auto task = std::make_shared<Task>(MakePlanned(std::move(plan)));
  task->tenant = TenantId{"t"};
  EXPECT_EQ(Choose(*task), -1);
  EXPECT_TRUE(absl::IsUnimplemented(placer_->NoDeviceFor(*task)));
}

// The transaction's own changes are not in the device's account yet.
TEST_F(PlacerTest, QueueCountsTasksUntilTheyLeave) {
  auto task = Occupy(0, 2.0);
  auto next = NewTask(QueueOf("busy"));
  In("busy", [&](TenantTransaction& transaction) {
    EXPECT_DOUBLE_EQ(placer_->QueueSeconds(transaction, 0), 2.0);
    placer_->Enter(transaction, *next, *task->queue);
    EXPECT_DOUBLE_EQ(placer_->QueueSeconds(transaction, 0), 4.0);
    placer_->Leave(transaction, *task);
    placer_->Leave(transaction, *next);
    EXPECT_DOUBLE_EQ(placer_->QueueSeconds(transaction, 0), 0);
  });
  EXPECT_EQ(task->queue, nullptr);
  EXPECT_TRUE(QueueOf("busy").preparing.empty());
}

TEST_F(PlacerTest, ReadyTaskLeavesTheQueue) {
  auto task = Occupy(0, 1.0);
  DeviceQueue& queue = QueueOf("busy");
  queue.sending.ready.push_back(task);
  task->links.queued_ready = true;
  In("busy", [&](TenantTransaction& transaction) { placer_->Leave(transaction, *task); });
  EXPECT_TRUE(queue.sending.ready.empty());
}

}  // namespace
}  // namespace stride::engine
