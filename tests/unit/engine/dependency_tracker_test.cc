#include "server/engine/scheduling/dependency_tracker.h"

#include <memory>
#include <vector>

#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class DependencyTrackerTest : public PartTest {
 protected:
  DependencyTrackerTest() { Start({HostDevice(0), HostDevice(1)}); }
  void TearDown() override {
    for (const auto& task : tasks_) {
      if (task->state != TaskState::kDone) End(task);
    }
    freed_.clear();
    PartTest::TearDown();
  }

  std::shared_ptr<Task> Enter(Uses uses, const std::shared_ptr<Task>& after = nullptr) {
    auto task = NewTask(QueueOf("t"), std::move(uses));
    In("t", [&](TenantTransaction& transaction) { tracker_.Enter(transaction, task, after); });
    tasks_.push_back(task);
    return task;
  }
  std::shared_ptr<Task> Write(const std::shared_ptr<store::Buffer>& buffer) {
    return Enter({Use{.buffer = buffer, .write = true, .fresh = true}});
  }
  std::shared_ptr<Task> Read(const std::shared_ptr<store::Buffer>& buffer) {
    return Enter({Use{.buffer = buffer, .read = true}});
  }
  void Send(const std::shared_ptr<Task>& task, int device = 0) {
    task->queue = &QueueOf("t", device);
    task->state = TaskState::kDispatched;
  }
  // Returns the tasks that are to be evaluated.
  std::vector<std::shared_ptr<Task>> End(const std::shared_ptr<Task>& task) {
    freed_.clear();
    task->state = TaskState::kDone;
    In("t", [&](TenantTransaction& transaction) { tracker_.Leave(transaction, *task); });
    task->uses.clear();
    return freed_;
  }

  DependencyTracker tracker_;
  std::vector<std::shared_ptr<Task>> tasks_;
};

TEST_F(DependencyTrackerTest, ReaderWaitsForTheWriterBeforeIt) {
  auto x = NewBuffer("t");
  auto writer = Write(x);
  auto reader = Read(x), other = Read(x);
  EXPECT_THAT(reader->order.pending, ElementsAre(writer));
  EXPECT_LT(writer->order.accepted, reader->order.accepted);
  EXPECT_THAT(End(writer), UnorderedElementsAre(reader, other));
  EXPECT_THAT(reader->order.pending, IsEmpty());
}

TEST_F(DependencyTrackerTest, WriterWaitsForAllReadersBeforeIt) {
  auto x = NewBuffer("t");
  auto a = Read(x), b = Read(x), writer = Write(x);
  EXPECT_THAT(writer->order.pending, UnorderedElementsAre(a, b));
  End(a);
  EXPECT_THAT(writer->order.pending, ElementsAre(b));
}

TEST_F(DependencyTrackerTest, TaskWaitsForOneThatSharesNoBuffer) {
  auto first = Write(NewBuffer("t"));
  auto second = Enter({Use{.buffer = NewBuffer("t"), .write = true}}, first);
  EXPECT_THAT(second->order.pending, ElementsAre(first));
  EXPECT_THAT(End(first), ElementsAre(second));
}

TEST_F(DependencyTrackerTest, IndependentTaskFollowsNoQueue) {
  auto task = Write(NewBuffer("t"));
  ASSERT_TRUE(DependencyTracker::QueueToFollow(*task).has_value());
  EXPECT_EQ(*DependencyTracker::QueueToFollow(*task), nullptr);
  EXPECT_TRUE(DependencyTracker::MayFollowIn(QueueOf("t", 1), *task));
}

TEST_F(DependencyTrackerTest, TaskFollowsItsInputsInOneQueue) {
  auto x = NewBuffer("t"), y = NewBuffer("t");
  auto a = Write(x), b = Write(y);
  auto task = Enter({Use{.buffer = x, .read = true}, Use{.buffer = y, .read = true}});
  EXPECT_FALSE(DependencyTracker::QueueToFollow(*task).has_value()) << "neither was sent";
  Send(a);
  EXPECT_FALSE(DependencyTracker::QueueToFollow(*task).has_value()) << "one was not sent";
  Send(b, 1);
  EXPECT_FALSE(DependencyTracker::QueueToFollow(*task).has_value()) << "two queues";
  Send(b);
  EXPECT_EQ(DependencyTracker::QueueToFollow(*task), &QueueOf("t"));
  EXPECT_TRUE(DependencyTracker::MayFollowIn(QueueOf("t"), *task));
  EXPECT_FALSE(DependencyTracker::MayFollowIn(QueueOf("t", 1), *task));
  a->cancel.num_recalls = 1;
  EXPECT_FALSE(DependencyTracker::QueueToFollow(*task).has_value()) << "it may be taken back";
}

// An upload runs in no worker.
TEST_F(DependencyTrackerTest, TaskWaitsForAHostAccess) {
  auto x = NewBuffer("t");
  auto upload = Write(x);
  upload->state = TaskState::kDispatched;
  EXPECT_FALSE(DependencyTracker::QueueToFollow(*Read(x)).has_value());
}

}  // namespace
}  // namespace stride::engine
