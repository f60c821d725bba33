// Tasks whose worker or device changes.
#include "server/engine/scheduling/worker_changes.h"

#include <memory>
#include <string>
#include <vector>

#include "server/base/error.h"
#include "tests/unit/engine/scheduling_parts.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WorkerChangesTest : public SchedulingPartsTest {
 protected:
  WorkerChangesTest() {
    EngineOptions options;
    options.worker_lost = [this](const WorkerLoss& loss) { losses_.push_back(loss); };
    Start(std::move(options));
    // Its reports go nowhere.
    starter_ = std::make_unique<WorkerStarter>(core_.get(), queues_.get(), health_.get(),
                                               WorkerStarter::Receivers{});
    changes_ =
        std::make_unique<WorkerChanges>(core_.get(),
                                        WorkerChanges::Parts{.queues = queues_.get(),
                                                             .memory = memory_.get(),
                                                             .task_memory = task_memory_.get(),
                                                             .health = health_.get(),
                                                             .starter = starter_.get(),
                                                             .slices = slices_.get()},
                                        &events_);
  }
  // The worker dies after it has begun `started` launches and ended `completed`.
  void Die(absl::Status cause, uint32_t completed, uint32_t started,
           uint64_t faulting_sequence = 0) {
    queue_->worker = nullptr;
    InAll([&](GlobalTransaction& transaction) {
      changes_->WorkerDied(transaction, *queue_,
                           {.cause = std::move(cause),
                            .faulting_sequence = faulting_sequence,
                            .completed_sequence = completed,
                            .started_sequence = started});
    });
  }
  static absl::Status Lost() {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "it died");
  }
  static absl::Status Fault() {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_KERNEL_FAULT, "it crashed");
  }
  // It changes an array in place, so it cannot be repeated.
  std::shared_ptr<Task> Change(const std::string& label) {
    auto task = Operation(label);
    task->uses[1].fresh = false;
    task->uses[1].read = true;
    return task;
  }

  std::vector<WorkerLoss> losses_;
  std::unique_ptr<WorkerStarter> starter_;
  std::unique_ptr<WorkerChanges> changes_;
};

TEST_F(WorkerChangesTest, TasksOfTheQueueContinueWithAWorker) {
  Operation("a");
  Operation("b");
  InAll([&](GlobalTransaction& transaction) { changes_->WorkerStarted(transaction, *queue_); });
  EXPECT_THAT(events_.Take(), ElementsAre("prepare a", "prepare b"));
  EXPECT_THAT(pumped_, ElementsAre(queue_));
}

TEST_F(WorkerChangesTest, TasksEndWithTheErrorOfTheStart) {
  auto a = Operation("a");
  Operation("b");
  InAll([&](GlobalTransaction& transaction) {
    changes_->WorkerNotStarted(transaction, *queue_, absl::UnavailableError("no room"));
  });
  EXPECT_THAT(events_.Take(), ElementsAre("end a", "end b"));
  EXPECT_TRUE(absl::IsUnavailable(a->result));
}

TEST_F(WorkerChangesTest, FaultEndsItsTaskAndOthersRunAgain) {
  auto faulty = Sent(Operation("faulty"));
  auto next = Sent(Operation("next"));
  Die(Fault(), 0, 1);
  EXPECT_EQ(ReasonOf(faulty->result), v1::ERROR_REASON_KERNEL_FAULT);
  EXPECT_EQ(faulty->sent.num_deaths, 1);
  EXPECT_EQ(next->state, TaskState::kWaiting);
  EXPECT_THAT(events_.Take(), ElementsAre("requeue next", "complete faulty", "evaluate next"));
  EXPECT_TRUE(queue_->sending.in_flight.empty());
}

TEST_F(WorkerChangesTest, WorkerNamesTheTaskAtFault) {
  auto a = Sent(Operation("a"));
  auto b = Sent(Operation("b"));
  Die(Fault(), 0, 2, /*faulting_sequence=*/2);
  EXPECT_EQ(b->sent.num_deaths, 1);
  EXPECT_EQ(a->sent.num_deaths, 0);
}

// A death that the task did not cause: it runs again, but not for ever.
TEST_F(WorkerChangesTest, RunningTaskIsRepeatedAFewTimes) {
  auto task = Operation("a");
  for (int i = 1; i < kMaxTaskAttempts; ++i) {
    queue_->sending.next_sequence = 1;
    Sent(task);
    Die(Lost(), 0, 1);
    EXPECT_THAT(events_.Take(), ElementsAre("requeue a", "evaluate a")) << i;
  }
  queue_->sending.next_sequence = 1;
  Sent(task);
  Die(Lost(), 0, 1);
  EXPECT_THAT(events_.Take(), ElementsAre("complete a"));
  EXPECT_EQ(ReasonOf(task->result), v1::ERROR_REASON_WORKER_LOST);
}

TEST_F(WorkerChangesTest, RunningChangeIsLost) {
  auto task = Sent(Change("a"));
  Die(Lost(), 0, 1);
  EXPECT_THAT(events_.Take(), ElementsAre("complete a"));
  EXPECT_EQ(ReasonOf(task->result), v1::ERROR_REASON_WORKER_LOST);
}

TEST_F(WorkerChangesTest, ChangeThatHadNotBegunRunsAgain) {
  Sent(Change("a"));
  Die(Lost(), 0, 0);
  EXPECT_THAT(events_.Take(), ElementsAre("requeue a", "evaluate a"));
}

TEST_F(WorkerChangesTest, RecalledTaskEndsInsteadOfRunningAgain) {
  Sent(Operation("running"));
  auto recalled = Sent(Operation("recalled"));
  recalled->cancel.recall = absl::CancelledError("cancelled");
  queue_->sending.recalls[2] = {recalled};
  Die(Lost(), 0, 1);
  EXPECT_TRUE(absl::IsCancelled(recalled->result));
  EXPECT_TRUE(queue_->sending.recalls.empty());
}

TEST_F(WorkerChangesTest, KilledTaskHasTheReason) {
  auto task = Sent(Operation("a"));
  task->cancel.stop = absl::DeadlineExceededError("too long");
  queue_->killed = true;
  Die(absl::DeadlineExceededError("too long"), 0, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(task->result));
  EXPECT_FALSE(queue_->killed) << "the next worker is another";
}

TEST_F(WorkerChangesTest, AbandonedLaunchReleasesItsMemory) {
  auto made = Placed();
  ++made->pin_count;
  queue_->sending.in_flight.push_back(
      {.sequence = 1,
       .task = nullptr,
       .last = true,
       .given_up = NewTask(*queue_),
       .held = {Use{.buffer = made, .write = true, .fresh = true}}});
  Die(Lost(), 0, 1);
  EXPECT_EQ(made->pin_count, 0);
}

TEST_F(WorkerChangesTest, LossIsReportedWithItsOperation) {
  Sent(Operation("a"));
  Die(Lost(), 0, 1);
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0].operation, "a");
  EXPECT_EQ(losses_[0].tenant, queue_->tenant);
  Die(absl::OkStatus(), 0, 0);
  EXPECT_EQ(losses_.size(), 1u) << "it was asked to end";
}

TEST_F(WorkerChangesTest, TasksInPreparationContinueAfterADeath) {
  Operation("a");
  Die(Lost(), 0, 0);
  EXPECT_THAT(events_.Take(), ElementsAre("prepare a"));
}

TEST_F(WorkerChangesTest, TasksLeaveADeviceThatDoesNotServe) {
  Operation("a");
  InAll([&](GlobalTransaction& transaction) { changes_->HealthChanged(transaction, 0); });
  EXPECT_THAT(events_.Take(), IsEmpty()) << "it serves";
  InAll([&](GlobalTransaction& transaction) {
    health_->Broke(transaction, 0, "test");
    changes_->HealthChanged(transaction, 0);
  });
  EXPECT_THAT(events_.Take(), ElementsAre("prepare a"));
}

}  // namespace
}  // namespace stride::engine
