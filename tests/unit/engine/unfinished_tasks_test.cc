// The list of unfinished tasks and their numbers.
#include "server/engine/scheduling/unfinished_tasks.h"

#include <memory>

#include "server/engine/scheduling/hazards.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;

class UnfinishedTasksTest : public PartTest {
 protected:
  UnfinishedTasksTest() {
    Start({HostDevice(0)});
    tasks_ = std::make_unique<UnfinishedTasks>(core_.get());
  }
  std::shared_ptr<Task> Add(const std::string& tenant, Uses uses = {}) {
    auto task = NewTask(QueueOf(tenant), std::move(uses));
    In(tenant, [&](TenantTransaction& transaction) { tasks_->Add(transaction, task); });
    return task;
  }
  void Remove(Task& task) {
    In(task.tenant.value,
       [&](TenantTransaction& transaction) { tasks_->Remove(transaction, task); });
  }
  int CountOf(const std::string& tenant) {
    TenantTransaction transaction(*core_, TenantId{tenant});
    return tasks_->Count(transaction, TenantId{tenant});
  }

  std::unique_ptr<UnfinishedTasks> tasks_;
};

TEST_F(UnfinishedTasksTest, CountsByTenantAndInAll) {
  auto a = Add("a");
  Add("a");
  Add("b");
  EXPECT_EQ(CountOf("a"), 2);
  EXPECT_EQ(CountOf("b"), 1);
  EXPECT_EQ(CountOf("c"), 0);
  EXPECT_EQ(tasks_->Count(), 3);
  Remove(*a);
  EXPECT_EQ(CountOf("a"), 1);
  EXPECT_EQ(tasks_->Count(), 2);
}

// The last one takes the place of the one that leaves.
TEST_F(UnfinishedTasksTest, TasksLeaveInAnyOrder) {
  auto first = Add("a"), second = Add("a"), third = Add("a");
  Remove(*first);
  Remove(*third);
  Remove(*second);
  EXPECT_EQ(CountOf("a"), 0);
  EXPECT_EQ(tasks_->Count(), 0);
}

// Engine::Drain waits for it in a global transaction.
TEST_F(UnfinishedTasksTest, LastTaskOfADrainingDaemonWakesTheWait) {
  auto task = Add("a");
  core_->draining = true;
  core_->executor.Run([&] { Remove(*task); });
  GlobalTransaction transaction(*core_);
  auto idle = [&] { return tasks_->Count() == 0; };
  EXPECT_TRUE(transaction.Await(absl::Condition(&idle), core_->Now() + absl::Seconds(1)));
}

// Without it a task, its buffer and its dependent would keep each other.
TEST_F(UnfinishedTasksTest, DroppedTasksAreReleased) {
  auto buffer = NewBuffer("a");
  auto writer = NewTask(QueueOf("a"), {Use{.buffer = buffer, .write = true, .fresh = true}});
  auto reader = NewTask(QueueOf("a"), {Use{.buffer = buffer, .read = true}});
  In("a", [&](TenantTransaction& transaction) {
    for (const auto& task : {writer, reader}) {
      RegisterAccesses(task);
      tasks_->Add(transaction, task);
    }
  });
  std::weak_ptr<Task> weak_writer = writer, weak_reader = reader;
  writer = reader = nullptr;
  EXPECT_FALSE(weak_writer.expired());
  tasks_->Drop();
  EXPECT_TRUE(weak_writer.expired());
  EXPECT_TRUE(weak_reader.expired());
  EXPECT_EQ(buffer.use_count(), 1);
}

}  // namespace
}  // namespace stride::engine
