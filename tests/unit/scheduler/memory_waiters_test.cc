// The order in which tasks and threads that wait for memory are tried.
#include "server/scheduler/memory_waiters.h"

#include <thread>

#include "gmock/gmock.h"
#include "tests/unit/scheduler/memory_parts.h"

namespace stride::scheduler {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryWaitersTest : public MemoryPartsTest {
 protected:
  void SetUp() override {
    Make({HostDevice(0), HostDevice(1)}, {});
    waiters_ = std::make_unique<MemoryWaiters>(core_.get(), lanes_.get(), &tasks_);
  }
  std::shared_ptr<Task> Waiting(Lane& lane, int priority = 0) {
    auto task = TaskOn(lane, {}, priority);
    GlobalTransaction transaction(*core_);
    waiters_->Enter(transaction, task);
    waiters_->Enter(transaction, task);  // once
    return task;
  }
  void Retry() {
    GlobalTransaction transaction(*core_);
    waiters_->Retry(transaction);
  }
  // Each task that is tried gets its memory.
  void GiveToAll() {
    tasks_.on_retry = [this](GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
      waiters_->Leave(transaction, *task);
    };
  }

  std::unique_ptr<MemoryWaiters> waiters_;
};

TEST_F(MemoryWaitersTest, QueueIsOrderedByPriorityThenAge) {
  Lane& lane = LaneOf(0);
  auto low = Waiting(lane, -1), first = Waiting(lane), second = Waiting(lane);
  auto high = Waiting(lane, 5);
  GiveToAll();
  Retry();
  EXPECT_THAT(tasks_.retried, ElementsAre(high, first, second, low));
  EXPECT_TRUE(lane.memory_queue.empty());
}

TEST_F(MemoryWaitersTest, QueueThatWaitsLongestIsTriedFirst) {
  auto one = Waiting(LaneOf(0, "a")), two = Waiting(LaneOf(1, "b")),
       three = Waiting(LaneOf(0, "b"));
  auto after_one = Waiting(LaneOf(0, "a"));
  GiveToAll();
  Retry();
  EXPECT_THAT(tasks_.retried, ElementsAre(one, after_one, two, three));
}

TEST_F(MemoryWaitersTest, NoTaskPassesTheFirstOfItsQueue) {
  Lane& lane = LaneOf(0, "a");
  auto first = Waiting(lane), second = Waiting(lane), other = Waiting(LaneOf(0, "b"));
  Retry();  // no task gets memory
  EXPECT_THAT(tasks_.retried, ElementsAre(first, other));
  EXPECT_TRUE(lane.WaitsBefore(other->memory_turn));
  EXPECT_FALSE(lane.WaitsBefore(first->memory_turn));
}

TEST_F(MemoryWaitersTest, ChangesOfOneTransactionCauseOneRetry) {
  auto first = Waiting(LaneOf(0));
  {
    TenantTransaction transaction(*core_, TenantId{"t"});
    waiters_->Changed(transaction);
    waiters_->Changed(transaction);
    EXPECT_THAT(tasks_.retried, IsEmpty());
  }
  EXPECT_THAT(tasks_.retried, ElementsAre(first));
}

TEST_F(MemoryWaitersTest, TaskThatLeavesFreesTheNext) {
  Lane& lane = LaneOf(0);
  auto first = Waiting(lane), second = Waiting(lane);
  {
    TenantTransaction transaction(*core_, lane.tenant);
    waiters_->Leave(transaction, *first);
  }
  EXPECT_THAT(tasks_.retried, ElementsAre(second));
}

TEST_F(MemoryWaitersTest, ThreadWaitsForChangeDeadlineOrEnd) {
  auto wait = [&](SteadyTime deadline) {
    GlobalTransaction transaction(*core_);
    waiters_->AwaitChange(transaction, waiters_->num_changes(transaction), deadline);
  };
  wait(Now() + absl::Milliseconds(1));  // no change
  std::thread waiting([&] { wait(SteadyTime::InfiniteFuture()); });
  uint64_t seen = 0;
  EXPECT_TRUE(testing::Eventually([&] {
    GlobalTransaction transaction(*core_);
    waiters_->Changed(transaction);
    return (seen = waiters_->num_changes(transaction)) > 0;  // counted only while a thread waits
  }));
  waiting.join();
  core_->ending = true;
  wait(SteadyTime::InfiniteFuture());
}

}  // namespace
}  // namespace stride::scheduler
