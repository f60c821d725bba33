// Reports of a worker about its tasks.
#include "server/engine/scheduling/task_results.h"

#include <memory>
#include <string>
#include <vector>

#include "server/base/error.h"
#include "tests/unit/engine/scheduling_parts.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TaskResultsTest : public SchedulingPartsTest {
 protected:
  TaskResultsTest() {
    Start();
    results_ =
        std::make_unique<TaskResults>(core_.get(),
                                      TaskResults::Parts{.queues = queues_.get(),
                                                         .memory = memory_.get(),
                                                         .task_memory = task_memory_.get(),
                                                         .health = health_.get(),
                                                         .placer = placer_.get(),
                                                         .slices = slices_.get(),
                                                         .cancellation = cancellation_.get()},
                                      &events_);
  }
  static wire::TaskResult Result(uint64_t sequence, double run_seconds = 0.5,
                                 absl::StatusCode code = absl::StatusCode::kOk) {
    wire::TaskResult result;
    result.set_sequence(sequence);
    result.set_run_seconds(run_seconds);
    result.mutable_status()->set_code(static_cast<int>(code));
    return result;
  }
  void Done(const std::vector<wire::TaskResult>& results) {
    In("t",
       [&](TenantTransaction& transaction) { results_->TasksDone(transaction, *queue_, results); });
  }

  std::unique_ptr<TaskResults> results_;
};

TEST_F(TaskResultsTest, ResultEndsItsTask) {
  auto a = Sent(Operation("a")), b = Sent(Operation("b"));
  time_.Advance(absl::Seconds(2));
  In("t", [&](TenantTransaction& transaction) {
    results_->TasksDone(transaction, *queue_, {Result(1)});
    EXPECT_DOUBLE_EQ(transaction.ChangeOf(0).busy_seconds, 0.5);
  });
  EXPECT_THAT(events_.Take(), ElementsAre("complete a"));
  EXPECT_TRUE(a->result.ok());
  EXPECT_EQ(a->timeline.begin_time, core_->Now() - absl::Seconds(0.5));
  EXPECT_THAT(pumped_, ElementsAre(queue_)) << "the worker has room";
  EXPECT_EQ(queue_->sending.in_flight.front().task, b);
}

TEST_F(TaskResultsTest, RunTimeIsLearned) {
  auto task = Sent(Operation("a"));
  Done({Result(1, 3.0)});
  TenantTransaction transaction(*core_, queue_->tenant);
  EXPECT_DOUBLE_EQ(placer_->ExpectedSeconds(transaction, *task, *queue_), 3.0);
}

// The first run on loops that every operation shares says nothing of the operation's own code.
TEST_F(TaskResultsTest, RunTimeByBlocksIsNotLearned) {
  auto task = Operation("a");
  task->code.block_loops = std::make_shared<const broker::CompiledModule>();
  Sent(task);
  Done({Result(1, 3.0)});
  TenantTransaction transaction(*core_, queue_->tenant);
  EXPECT_LT(placer_->ExpectedSeconds(transaction, *task, *queue_), 1.0);
}

TEST_F(TaskResultsTest, ErrorNamesTheOperation) {
  auto task = Sent(Operation("a"));
  Done({Result(1, 0, absl::StatusCode::kInternal)});
  EXPECT_EQ(task->result.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(MetadataOf(task->result, "operation"), "a");
}

TEST_F(TaskResultsTest, TaskHasTheErrorOfItsZeroFill) {
  auto task = Sent(Operation("a"));
  queue_->sending.in_flight.push_front({0, task, false});
  Done({Result(0, 0, absl::StatusCode::kInternal), Result(1)});
  EXPECT_EQ(task->result.code(), absl::StatusCode::kInternal);
}

TEST_F(TaskResultsTest, ErrorOfItsCodeIsTheCause) {
  auto module = std::make_shared<broker::CompiledModule>();
  module->id = 7;
  auto task = Operation("a");
  task->code.module = module;
  Sent(task);
  queue_->contents.load_errors[7] = absl::InvalidArgumentError("the driver refused it");
  Done({Result(1, 0, absl::StatusCode::kFailedPrecondition)});
  EXPECT_EQ(task->result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(task->result.message()), HasSubstr("the driver refused it"));
}

// It was sent before the failure of the task that it followed was known.
TEST_F(TaskResultsTest, ResultFromASpoiledInputIsAnError) {
  auto from = Placed();
  auto task = Sent(Operation("a", from, Placed()));
  from->Spoil(absl::InternalError("its maker failed"));
  Done({Result(1)});
  EXPECT_EQ(task->result.message(), "its maker failed");
}

TEST_F(TaskResultsTest, AnswerOutOfOrderReplacesTheWorker) {
  Sent(Operation("a"));
  Sent(Operation("b"));
  Done({Result(2)});
  time_.RunAll();
  EXPECT_FALSE(worker_->alive());
  EXPECT_THAT(events_.Take(), IsEmpty());
}

TEST_F(TaskResultsTest, ResultRefusesTheRecallOfItsTask) {
  worker_->HoldCancels();
  auto task = Sent(Operation("a"));
  In("t", [&](TenantTransaction& transaction) { cancellation_->Cancel(transaction, task); });
  ASSERT_EQ(queue_->sending.recalls.size(), 1u);
  Done({Result(1)});
  EXPECT_TRUE(queue_->sending.recalls.empty());
  EXPECT_THAT(events_.Take(), ElementsAre("complete a"));
}

TEST_F(TaskResultsTest, EndOfAnAbandonedLaunchReleasesItsMemory) {
  auto made = Placed();
  ++made->pin_count;
  queue_->sending.in_flight.push_back(
      {.sequence = 1,
       .task = nullptr,
       .last = true,
       .given_up = NewTask(*queue_),
       .held = {Use{.buffer = made, .write = true, .fresh = true}}});
  Done({Result(1)});
  EXPECT_EQ(made->pin_count, 0);
  EXPECT_TRUE(made->replicas.empty());
  EXPECT_THAT(events_.Take(), IsEmpty());
}

TEST_F(TaskResultsTest, TextGoesToTheTaskInFlight) {
  auto a = Sent(Operation("a")), b = Sent(Operation("b"));
  In("t", [&](TenantTransaction& transaction) {
    results_->Printed(transaction, *queue_, 2, "hello\n", 0);
    results_->Printed(transaction, *queue_, 3, "of no task\n", 0);
  });
  EXPECT_EQ(a->printed, nullptr);
  EXPECT_NE(b->printed, nullptr);
}

}  // namespace
}  // namespace stride::engine
