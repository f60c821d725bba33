// Tasks that a conductor runs.
#include "server/engine/scheduling/conducted_tasks.h"

#include <memory>

#include "tests/unit/engine/fake_task_events.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct FakeConductor : public Conductor {
  void Run() override { ++num_runs; }
  void Stop(TenantTransaction&) override {}
  int num_runs = 0;
};

class ConductedTasksTest : public PartTest {
 protected:
  ConductedTasksTest() {
    Start({HostDevice(0)});
    conducted_ = std::make_unique<ConductedTasks>(core_.get(), &events_);
    task_ = NewTask(QueueOf("t"));
    task_->label = "loop";
    task_->bodies = conductor_;
  }
  void Begin() {
    In("t", [&](TenantTransaction& transaction) { conducted_->Begin(transaction, task_); });
  }
  void End(absl::Status status) {
    In("t", [&](TenantTransaction& transaction) {
      conducted_->Ended(transaction, task_, std::move(status));
    });
  }

  FakeTaskEvents events_;
  std::unique_ptr<ConductedTasks> conducted_;
  std::shared_ptr<FakeConductor> conductor_ = std::make_shared<FakeConductor>();
  std::shared_ptr<Task> task_;
};

// The conductor begins transactions, so it runs on a thread of its own.
TEST_F(ConductedTasksTest, ConductorRunsAfterTheTransaction) {
  Begin();
  EXPECT_EQ(conductor_->num_runs, 0);
  EXPECT_EQ(task_->state, TaskState::kDispatched);
  EXPECT_EQ(task_->stream, conductor_);
  time_.RunAll();
  EXPECT_EQ(conductor_->num_runs, 1);
}

TEST_F(ConductedTasksTest, EndIsCountedWhereTheBodiesRan) {
  Begin();
  task_->timeline.ran_on_device = 0;
  In("t", [&](TenantTransaction& transaction) {
    conducted_->Ended(transaction, task_, absl::OkStatus());
    EXPECT_EQ(transaction.ChangeOf(0).succeeded, 1);
  });
  EXPECT_THAT(events_.Take(), ElementsAre("complete loop"));
  EXPECT_EQ(task_->stream, nullptr);
}

TEST_F(ConductedTasksTest, StoppedTaskHasTheReasonAsItsResult) {
  Begin();
  task_->cancel.stop = absl::CancelledError("by the client");
  End(absl::InternalError("a body was cancelled"));
  EXPECT_EQ(task_->result, absl::CancelledError("by the client"));
}

TEST_F(ConductedTasksTest, TaskThatEndedBeforeTheStopKeepsItsResult) {
  Begin();
  task_->cancel.stop = absl::CancelledError("too late");
  End(absl::OkStatus());
  EXPECT_TRUE(task_->result.ok());
}

}  // namespace
}  // namespace stride::engine
