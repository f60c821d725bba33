#include "server/engine/scheduling/code_preparer.h"

#include <memory>
#include <string>
#include <utility>

#include "tests/unit/engine/fake_task_events.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CodePreparerTest : public PartTest {
 protected:
  CodePreparerTest() {
    Start({HostDevice(0), StagedDevice(0)});
    code_ = std::make_unique<CodePreparer>(core_.get(), &events_);
  }

  // A task on a device, whose plan needs code.
  std::shared_ptr<Task> NewTaskWithCode(const std::string& label, int device = 0) {
    ops::Plan plan;
    plan.code.emplace().mutable_source()->set_text("kernel");
    return On(device, label, MakePlanned(std::move(plan)));
  }
  std::shared_ptr<Task> On(int device, const std::string& label,
                           std::shared_ptr<const Planned> planned) {
    DeviceQueue& queue = QueueOf("t", device);
    auto task = std::make_shared<Task>(std::move(planned));
    task->tenant = queue.tenant;
    task->label = label;
    task->queue = &queue;
    task->state = TaskState::kPreparing;
    return task;
  }
  bool Have(const std::shared_ptr<Task>& task) {
    TenantTransaction transaction(*core_, task->tenant);
    return code_->Have(transaction, task);
  }

  FakeTaskEvents events_;
  std::unique_ptr<CodePreparer> code_;
};

TEST_F(CodePreparerTest, TaskWithoutCodeNeedsNone) {
  EXPECT_TRUE(Have(On(0, "a", NoPlan())));
  EXPECT_EQ(broker_->num_compiles(), 0);
}

// The compiler is asked after the transaction: it may answer at once.
TEST_F(CodePreparerTest, TaskWaitsForItsCode) {
  auto task = NewTaskWithCode("a");
  EXPECT_FALSE(Have(task));
  EXPECT_FALSE(Have(task)) << "one request at a time";
  EXPECT_EQ(broker_->num_compiles(), 0);
  time_.RunAll();
  EXPECT_EQ(broker_->num_compiles(), 1);
  EXPECT_THAT(events_.Take(), ElementsAre("prepare a"));
  EXPECT_TRUE(Have(task));
  EXPECT_EQ(task->code.module->target, task->queue->description.target());
}

TEST_F(CodePreparerTest, KnownCodeIsUsedAtOnce) {
  auto first = NewTaskWithCode("a");
  Have(first);
  time_.RunAll();
  EXPECT_TRUE(Have(On(0, "b", first->planned))) << "the plan has it";
  EXPECT_TRUE(Have(NewTaskWithCode("c"))) << "the compiler has it";
  EXPECT_EQ(broker_->num_compiles(), 1);
}

TEST_F(CodePreparerTest, CodeIsForTheTargetOfTheDevice) {
  auto task = NewTaskWithCode("a");
  Have(task);
  time_.RunAll();
  task->queue = &QueueOf("t", 1);
  ASSERT_NE(task->queue->description.target(), task->code.module->target);
  EXPECT_FALSE(Have(task));
  time_.RunAll();
  EXPECT_TRUE(Have(task));
  EXPECT_EQ(task->code.module->target, task->queue->description.target());
}

TEST_F(CodePreparerTest, CompileErrorEndsTheTask) {
  broker_->set_compile_error(absl::InvalidArgumentError("a syntax error"));
  auto task = NewTaskWithCode("a");
  EXPECT_FALSE(Have(task));
  time_.RunAll();
  EXPECT_THAT(events_.Take(), ElementsAre("end a"));
  EXPECT_EQ(task->result.message(), "a syntax error");
}

TEST_F(CodePreparerTest, TaskThatHasLeftIsNotPrepared) {
  auto task = NewTaskWithCode("a");
  Have(task);
  task->state = TaskState::kDone;  // cancelled
  time_.RunAll();
  EXPECT_THAT(events_.Take(), IsEmpty());
}

}  // namespace
}  // namespace stride::engine
