// The order in which tasks and threads that wait for memory are tried.
#include "server/engine/memory/memory_waiters.h"

#include <thread>

#include "gmock/gmock.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryWaitersTest : public MemoryPartsTest {
 protected:
  void SetUp() override {
    Make({HostDevice(0), HostDevice(1)}, {});
    waiters_ = std::make_unique<MemoryWaiters>(core_.get(), queues_.get(), &tasks_);
  }
  std::shared_ptr<Task> Waiting(DeviceQueue& queue, int priority = 0) {
    auto task = TaskOn(queue, {}, priority);
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
  DeviceQueue& queue = QueueOf(0);
  auto low = Waiting(queue, -1), first = Waiting(queue), second = Waiting(queue);
  auto high = Waiting(queue, 5);
  GiveToAll();
  Retry();
  EXPECT_THAT(tasks_.retried, ElementsAre(high, first, second, low));
  EXPECT_TRUE(queue.memory_queue.empty());
}

TEST_F(MemoryWaitersTest, QueueThatWaitsLongestIsTriedFirst) {
  auto one = Waiting(QueueOf(0, "a")), two = Waiting(QueueOf(1, "b")),
       three = Waiting(QueueOf(0, "b"));
  auto after_one = Waiting(QueueOf(0, "a"));
  GiveToAll();
  Retry();
  EXPECT_THAT(tasks_.retried, ElementsAre(one, after_one, two, three));
}

TEST_F(MemoryWaitersTest, NoTaskPassesTheFirstOfItsQueue) {
  DeviceQueue& queue = QueueOf(0, "a");
  auto first = Waiting(queue), second = Waiting(queue), other = Waiting(QueueOf(0, "b"));
  Retry();  // no task gets memory
  EXPECT_THAT(tasks_.retried, ElementsAre(first, other));
  EXPECT_TRUE(queue.WaitsBefore(other->memory.turn));
  EXPECT_FALSE(queue.WaitsBefore(first->memory.turn));
}

TEST_F(MemoryWaitersTest, ChangesOfOneTransactionCauseOneRetry) {
  auto first = Waiting(QueueOf(0));
  {
    TenantTransaction transaction(*core_, TenantId{"t"});
    waiters_->Changed(transaction);
    waiters_->Changed(transaction);
    EXPECT_THAT(tasks_.retried, IsEmpty());
  }
  EXPECT_THAT(tasks_.retried, ElementsAre(first));
}

TEST_F(MemoryWaitersTest, TaskThatLeavesFreesTheNext) {
  DeviceQueue& queue = QueueOf(0);
  auto first = Waiting(queue), second = Waiting(queue);
  {
    TenantTransaction transaction(*core_, queue.tenant);
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
}  // namespace stride::engine
