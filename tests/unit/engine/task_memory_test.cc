// The memory of a placed task: all of it or none, pinned to the task's end.
#include "server/engine/memory/task_memory.h"

#include "gmock/gmock.h"
#include "server/base/error.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TaskMemoryTest : public MemoryPartsTest {
 protected:
  static constexpr int64_t kBlock = 64 << 10;
  void MakeMemory(std::vector<wire::DeviceDescription> devices, Limits limits = {}) {
    Make(std::move(devices), limits);
    executor_ = std::make_unique<OutOfCoreExecutor>(core_.get(), queues_.get(), memory_.get(),
                                                    workers_.get(), &tasks_, nullptr, nullptr);
    task_memory_ =
        std::make_unique<TaskMemory>(core_.get(), memory_.get(), executor_.get(), &tasks_);
    queue_ = &QueueOf(0);
  }
  static Use Makes(std::shared_ptr<store::Buffer> buffer) {
    return {.buffer = std::move(buffer), .write = true, .fresh = true};
  }
  static Use Reads(std::shared_ptr<store::Buffer> buffer) {
    return {.buffer = std::move(buffer), .read = true};
  }
  bool Take(const std::shared_ptr<Task>& task) {
    TenantTransaction transaction(*core_, task->tenant);
    return task_memory_->Take(transaction, task);
  }
  bool TakeWithAll(const std::shared_ptr<Task>& task) {
    GlobalTransaction transaction(*core_);
    return task_memory_->Take(transaction, task);
  }
  void Release(Task& task) {
    TenantTransaction transaction(*core_, task.tenant);
    task_memory_->Release(transaction, task);
  }

  DeviceQueue* queue_ = nullptr;
  std::unique_ptr<OutOfCoreExecutor> executor_;
  std::unique_ptr<TaskMemory> task_memory_;
};

// The queue has no arena yet: another transaction has to make one.
TEST_F(TaskMemoryTest, TaskIsPreparedAgainWithAllTenants) {
  MakeMemory({HostDevice(0)});
  auto task = TaskOn(*queue_, {Makes(EmptyBuffer(kBlock))});
  EXPECT_FALSE(Take(task));
  EXPECT_THAT(tasks_.retried, ElementsAre(task));
  EXPECT_TRUE(TakeWithAll(task));
}

TEST_F(TaskMemoryTest, FreeBlocksNeedOnlyTheTenant) {
  MakeMemory({HostDevice(0)});
  auto first = TaskOn(*queue_, {Makes(EmptyBuffer(kBlock))});
  ASSERT_TRUE(TakeWithAll(first));
  auto task = TaskOn(*queue_, {Makes(EmptyBuffer(kBlock)), Makes(EmptyBuffer(kBlock))});
  EXPECT_TRUE(Take(task));
  EXPECT_THAT(tasks_.retried, IsEmpty());
  EXPECT_EQ(task->uses[1].buffer->replicas.count(0), 1u);
}

TEST_F(TaskMemoryTest, BuffersArePinnedUntilTheRelease) {
  MakeMemory({HostDevice(0)});
  auto buffer = EmptyBuffer(kBlock);
  auto task = TaskOn(*queue_, {Makes(buffer)});
  ASSERT_TRUE(TakeWithAll(task));
  EXPECT_TRUE(Take(task)) << "it has all";
  EXPECT_EQ(buffer->pin_count, 1);
  EXPECT_EQ(queue_->num_holding, 1);
  Release(*task);
  Release(*task);
  EXPECT_EQ(buffer->pin_count, 0);
  EXPECT_EQ(queue_->num_holding, 0);
  EXPECT_EQ(buffer->replicas.count(0), 1u) << "its content stays";
}

// Bytes of the call are copied at once: no other thread is asked.
TEST_F(TaskMemoryTest, InlineInputIsCopiedAtOnce) {
  MakeMemory({HostDevice(0)});
  ASSERT_TRUE(TakeWithAll(TaskOn(*queue_, {Makes(EmptyBuffer(kBlock))})));
  auto input = EmptyBuffer(4);
  input->inline_bytes = std::make_shared<const std::string>("abcd");
  auto task = TaskOn(*queue_, {Reads(input)});
  EXPECT_TRUE(Take(task));
  EXPECT_EQ(task->memory.num_moves, 0);
  const store::Allocation& block = input->replicas.at(0);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(block.data()), 4), "abcd");
}

TEST_F(TaskMemoryTest, InputIsBroughtFromAnotherDevice) {
  MakeMemory({HostDevice(0), HostDevice(1)});
  auto input = Filled(QueueOf(1), 4 * kMiB, 'i');
  auto task = TaskOn(*queue_, {Reads(input)});
  auto other = TaskOn(*queue_, {Reads(input)});
  {
    GlobalTransaction transaction(*core_);
    EXPECT_FALSE(task_memory_->Take(transaction, task));
    EXPECT_FALSE(task_memory_->Take(transaction, other));
    EXPECT_EQ(task->memory.num_moves, 1);
    EXPECT_EQ(other->memory.num_moves, 1) << "it waits for the same copy";
  }
  ASSERT_TRUE(AwaitCopies());
  EXPECT_THAT(tasks_.retried, ElementsAre(task, other));
  EXPECT_TRUE(Take(task));
}

// Two tasks that each had a part would wait for each other.
TEST_F(TaskMemoryTest, TaskTakesAllOrNothing) {
  MakeMemory({HostDevice(0, kMiB)}, {.memory = 0});
  auto first = TaskOn(*queue_, {Makes(EmptyBuffer(kMiB * 3 / 4))});
  ASSERT_TRUE(TakeWithAll(first));
  auto task = TaskOn(*queue_, {Makes(EmptyBuffer(kMiB / 8)), Makes(EmptyBuffer(kMiB / 2))});
  EXPECT_FALSE(TakeWithAll(task));
  EXPECT_TRUE(task->memory.waits);
  EXPECT_TRUE(task->uses[0].buffer->replicas.empty());
  EXPECT_EQ(task->uses[0].buffer->pin_count, 0);
  auto later = TaskOn(*queue_, {Makes(EmptyBuffer(kMiB / 16))});
  EXPECT_FALSE(TakeWithAll(later)) << "none passes it";
  Release(*first);
  first->uses.clear();
  {
    GlobalTransaction transaction(*core_);
    memory_->arenas().Reclaim(transaction);
  }
  EXPECT_TRUE(TakeWithAll(task));
  EXPECT_FALSE(task->memory.waits);
}

TEST_F(TaskMemoryTest, TaskThatLeavesNoLongerWaits) {
  MakeMemory({HostDevice(0, kMiB)}, {.memory = 0});
  auto first = TaskOn(*queue_, {Makes(EmptyBuffer(kMiB * 3 / 4))});
  ASSERT_TRUE(TakeWithAll(first));
  auto task = TaskOn(*queue_, {Makes(EmptyBuffer(kMiB / 2))});
  EXPECT_FALSE(TakeWithAll(task));
  Release(*task);
  EXPECT_TRUE(queue_->memory_queue.empty());
}

// No end of a task would free the memory.
TEST_F(TaskMemoryTest, TaskEndsWhereNoMemoryWillComeFree) {
  MakeMemory({HostDevice(0, kMiB)}, {.memory = 0});
  auto held = Filled(*queue_, kMiB * 3 / 4, 'h');
  ++held->pin_count;
  auto task = TaskOn(*queue_, {Makes(EmptyBuffer(kMiB / 2))});
  EXPECT_FALSE(TakeWithAll(task));
  ASSERT_EQ(tasks_.failed.size(), 1u);
  EXPECT_EQ(ReasonOf(tasks_.failed[0].second), v1::ERROR_REASON_DEVICE_MEMORY);
}

TEST_F(TaskMemoryTest, TooLargeATaskIsCutOrEnds) {
  MakeMemory({HostDevice(0, kMiB)});
  auto task = TaskOn(*queue_, {Makes(EmptyBuffer(2 * kMiB))});
  EXPECT_FALSE(TakeWithAll(task));
  ASSERT_EQ(tasks_.failed.size(), 1u) << "no plan says how to cut it";
  EXPECT_TRUE(absl::IsResourceExhausted(tasks_.failed[0].second));
}

TEST_F(TaskMemoryTest, AbandonedLaunchReleasesWhatItUsed) {
  MakeMemory({HostDevice(0)});
  auto made = Filled(*queue_, kBlock, 'm'), read = Filled(*queue_, kBlock, 'r');
  made->pin_count = read->pin_count = 1;
  DeviceQueue::InFlight entry{.sequence = 1, .task = nullptr, .last = true};
  entry.held = {Reads(read), Makes(made)};
  TenantTransaction transaction(*core_, queue_->tenant);
  task_memory_->ReleaseAbandoned(transaction, entry);
  EXPECT_EQ(made->pin_count + read->pin_count, 0);
  EXPECT_TRUE(made->replicas.empty()) << "its task has ended without content";
  EXPECT_FALSE(read->replicas.empty());
}

TEST_F(TaskMemoryTest, LentArrayIsOnlyRead) {
  MakeMemory({HostDevice(0)});
  auto lent = EmptyBuffer(kBlock);
  lent->num_loans = 1;
  auto reader = TaskOn(*queue_, {Reads(lent)});
  EXPECT_FALSE(TaskMemory::WritesLoan(*reader));
  reader->options.drop_other_replicas = true;
  EXPECT_TRUE(TaskMemory::WritesLoan(*reader)) << "a move would take it away";
  EXPECT_TRUE(TaskMemory::WritesLoan(*TaskOn(*queue_, {Makes(lent)})));
}

}  // namespace
}  // namespace stride::engine
