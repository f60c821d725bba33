#include "server/engine/scheduling/deadlines.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Notes the labels of tasks whose deadline has passed.
class FakeEarlyEnds : public EarlyEnds {
 public:
  void Cancel(TenantTransaction&, const std::shared_ptr<Task>&) override {}
  void DeadlinePassed(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    events_.push_back("late " + task->label);
  }
  std::vector<std::string> Take() { return std::exchange(events_, {}); }

 private:
  std::vector<std::string> events_;
};

class DeadlinesTest : public PartTest {
 protected:
  DeadlinesTest() {
    Start({HostDevice(0)});
    deadlines_ = std::make_unique<Deadlines>(core_.get(), &events_);
  }

  std::shared_ptr<Task> Watch(const std::string& label, absl::Duration time,
                              const std::string& tenant = "t") {
    auto task = NewTask(QueueOf(tenant));
    task->label = label;
    task->order.accepted = ++order_;
    task->options.deadline = core_->Now() + time;
    In(tenant, [&](TenantTransaction& transaction) { deadlines_->Watch(transaction, *task); });
    tasks_.push_back(task);
    return task;
  }
  void Forget(const Task& task) {
    In(task.tenant.value,
       [&](TenantTransaction& transaction) { deadlines_->Forget(transaction, task); });
  }

  FakeEarlyEnds events_;
  std::unique_ptr<Deadlines> deadlines_;
  std::vector<std::shared_ptr<Task>> tasks_;
  uint64_t order_ = 0;
};

TEST_F(DeadlinesTest, DeadlinePassesAtItsTime) {
  Watch("a", absl::Milliseconds(100));
  time_.Advance(absl::Milliseconds(99));
  EXPECT_THAT(events_.Take(), IsEmpty());
  time_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(events_.Take(), ElementsAre("late a"));
  time_.Advance(absl::Hours(1));
  EXPECT_THAT(events_.Take(), IsEmpty()) << "once";
}

TEST_F(DeadlinesTest, TaskThatEndsForgetsItsDeadline) {
  auto a = Watch("a", absl::Milliseconds(100));
  Watch("b", absl::Milliseconds(200));
  Forget(*a);
  time_.Advance(absl::Seconds(1));
  EXPECT_THAT(events_.Take(), ElementsAre("late b"));
}

TEST_F(DeadlinesTest, NoDeadlineIsNotWatched) {
  auto task = Watch("a", absl::InfiniteDuration());
  time_.Advance(absl::Hours(1));
  EXPECT_THAT(events_.Take(), IsEmpty());
  Forget(*task);
}

TEST_F(DeadlinesTest, EarlierDeadlineOfALaterTaskIsKept) {
  Watch("a", absl::Milliseconds(500));
  Watch("b", absl::Milliseconds(100));
  Watch("c", absl::Milliseconds(100));
  time_.Advance(absl::Milliseconds(100));
  EXPECT_THAT(events_.Take(), ElementsAre("late b", "late c"));
  time_.Advance(absl::Milliseconds(400));
  EXPECT_THAT(events_.Take(), ElementsAre("late a"));
}

// The timer looks every second, and so does not keep a request for each of them.
TEST_F(DeadlinesTest, FarDeadlineIsKept) {
  Watch("a", absl::Hours(1));
  time_.Advance(absl::Hours(1) - absl::Milliseconds(1));
  EXPECT_THAT(events_.Take(), IsEmpty());
  time_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(events_.Take(), ElementsAre("late a"));
}

TEST_F(DeadlinesTest, ThousandsMayPassAtOnce) {
  for (int i = 0; i < 2000; ++i) Watch("a", absl::Milliseconds(100));
  time_.Advance(absl::Milliseconds(100));
  EXPECT_THAT(events_.Take(), SizeIs(2000));
}

TEST_F(DeadlinesTest, TenantsHaveTheirOwn) {
  Watch("a", absl::Milliseconds(100), "t");
  Watch("b", absl::Milliseconds(50), "u");
  time_.Advance(absl::Milliseconds(50));
  EXPECT_THAT(events_.Take(), ElementsAre("late b"));
  time_.Advance(absl::Milliseconds(50));
  EXPECT_THAT(events_.Take(), ElementsAre("late a"));
}

}  // namespace
}  // namespace stride::engine
