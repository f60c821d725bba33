// How prepared tasks travel to a worker.
#include "server/engine/scheduling/dispatcher.h"

#include <memory>
#include <string>

#include "server/base/error.h"
#include "tests/unit/engine/scheduling_parts.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DispatcherTest : public SchedulingPartsTest {
 protected:
  DispatcherTest() {
    Start();
    dispatcher_ =
        std::make_unique<Dispatcher>(core_.get(), memory_.get(), placer_.get(), slices_.get(),
                                     cancellation_.get(), loader_.get(), &events_);
  }
  std::shared_ptr<Task> Add(std::shared_ptr<Task> task) {
    In("t", [&](TenantTransaction& transaction) { dispatcher_->Add(transaction, task); });
    return task;
  }
  void Pump() {
    In("t", [&](TenantTransaction& transaction) { dispatcher_->Pump(transaction, *queue_); });
  }
  std::vector<std::string> SentLabels() {
    std::vector<std::string> labels;
    for (const wire::Task& task : worker_->submitted()) labels.push_back(task.label());
    return labels;
  }
  // The worker's queue is long enough that its next answer comes before it has nothing to do.
  void MakeBusy() {
    for (int i = 0; i < 8; ++i) Sent(Operation("in flight"));
  }

  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(DispatcherTest, ReadyTasksTravelInOnePacket) {
  auto a = Add(Operation("a")), b = Add(Operation("b"));
  EXPECT_THAT(pumped_, ElementsAre(queue_, queue_));
  Pump();
  EXPECT_EQ(worker_->num_packets(), 1);
  EXPECT_THAT(SentLabels(), ElementsAre("a", "b"));
  EXPECT_EQ(a->state, TaskState::kDispatched);
  EXPECT_EQ(b->sent.first_sequence, 2u);
  EXPECT_EQ(queue_->sending.in_flight.size(), 2u);
  EXPECT_TRUE(queue_->sending.ready.empty());
  EXPECT_TRUE(queue_->preparing.empty());
  EXPECT_THAT(events_.Take(), IsEmpty()) << "no call upward in the common case";
}

TEST_F(DispatcherTest, HigherPriorityGoesFirstThenAge) {
  Add(Operation("a"));
  Add(Operation("b"));
  auto urgent = Operation("urgent");
  urgent->options.priority = 1;
  Add(urgent);
  Pump();
  EXPECT_THAT(SentLabels(), ElementsAre("urgent", "a", "b"));
}

TEST_F(DispatcherTest, TaskIsBoundToItsBlocks) {
  auto to = Placed();
  Add(Operation("a", Placed(), to));
  Pump();
  const wire::Task task = worker_->submitted().front();
  ASSERT_TRUE(task.has_elementwise());
  EXPECT_EQ(to->num_writes, 1u);
  EXPECT_EQ(task.sequence(), 1u);
  EXPECT_EQ(queue_->contents.mapped.count(to->replicas.at(0).arena->id), 1u);
}

TEST_F(DispatcherTest, OutputIsClearedBeforeItsLaunch) {
  auto task = Operation("a");
  ops::Plan plan = task->plan();
  plan.zeroed_outputs = {0};
  task->planned = MakePlanned(std::move(plan));
  Add(task);
  Pump();
  ASSERT_EQ(worker_->submitted().size(), 2u);
  EXPECT_TRUE(worker_->submitted()[0].has_zero_fill());
  EXPECT_EQ(worker_->submitted()[1].sequence(), 2u);
  EXPECT_EQ(task->sent.first_sequence, 1u);
  EXPECT_EQ(task->sent.last_sequence, 2u);
  EXPECT_FALSE(queue_->sending.in_flight.front().last);
}

TEST_F(DispatcherTest, DependentsMayFollowInTheSamePacket) {
  auto between = Placed();
  auto maker = Operation("maker", Placed(), between);
  Operation("reader", between, Placed());
  Add(maker);
  Pump();
  EXPECT_THAT(events_.Take(), ElementsAre("evaluate reader"));
}

TEST_F(DispatcherTest, BusyWorkerGetsTasksWithItsNextAnswer) {
  MakeBusy();
  Add(Operation("a"));
  EXPECT_THAT(pumped_, IsEmpty());
  for (int i = 0; i < 31; ++i) Add(Operation("more"));
  EXPECT_THAT(pumped_, ElementsAre(queue_)) << "they are worth a packet of their own";
}

TEST_F(DispatcherTest, BatchForAWorkerWithWorkTravelsAtItsEnd) {
  Sent(Operation("in flight"));
  auto task = Operation("a");
  In("t", [&](TenantTransaction& transaction) {
    transaction.BeginBatch();
    dispatcher_->Add(transaction, task);
    EXPECT_TRUE(transaction.work().pumped.empty());
    dispatcher_->FlushBatch(transaction);
    EXPECT_THAT(transaction.work().pumped, ElementsAre(queue_));
  });
}

TEST_F(DispatcherTest, WithoutAWorkerNothingIsSent) {
  queue_->worker = nullptr;
  auto task = Add(Operation("a"));
  Pump();
  EXPECT_THAT(queue_->sending.ready, ElementsAre(task));
  EXPECT_EQ(task->state, TaskState::kPreparing);
}

TEST_F(DispatcherTest, TaskWithASpoiledInputEndsUnrun) {
  auto from = Placed();
  auto task = Add(Operation("a", from, Placed()));
  from->Spoil(absl::InternalError("its maker failed"));
  Pump();
  EXPECT_THAT(events_.Take(), ElementsAre("end a"));
  EXPECT_EQ(task->result.message(), "its maker failed");
  EXPECT_EQ(worker_->num_packets(), 0);
}

// Its input's maker was taken back from the worker since.
TEST_F(DispatcherTest, TaskThatMayNotFollowWaitsAgain) {
  auto between = Placed();
  Operation("maker", Placed(), between);
  auto reader = Add(Operation("reader", between, Placed()));
  Pump();
  EXPECT_THAT(events_.Take(), ElementsAre("postpone reader"));
  EXPECT_EQ(reader->state, TaskState::kWaiting);
}

TEST_F(DispatcherTest, TooLargeALaunchIsRefused) {
  auto task = Add(Operation(std::string(60 << 10, 'x')));
  Pump();
  EXPECT_EQ(ReasonOf(task->result), v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(worker_->num_packets(), 0);
}

// A move of arrays to a device: it has ended when they are there.
TEST_F(DispatcherTest, TaskWithoutALaunchCompletes) {
  auto task = Operation("move");
  task->planned = NoPlan();
  Add(task);
  Pump();
  EXPECT_THAT(events_.Take(), ElementsAre("complete move"));
  EXPECT_TRUE(task->result.ok());
}

TEST_F(DispatcherTest, LongQueueIsSentInPieces) {
  for (int i = 0; i < 300; ++i) Add(Operation("a"));
  Pump();
  EXPECT_EQ(worker_->submitted().size(), 256u);
  EXPECT_EQ(queue_->sending.ready.size(), 44u);
}

TEST_F(DispatcherTest, ObserverLearnsOfTheStart) {
  std::vector<TaskState> states;
  auto task = Operation("a");
  task->callbacks.observer = std::make_unique<const std::function<void(TaskState)>>(
      [&](TaskState state) { states.push_back(state); });
  worker_->set_begins(false);
  Add(task);
  Pump();
  time_.Advance(absl::Milliseconds(20));
  EXPECT_THAT(states, ElementsAre(TaskState::kDispatched)) << "sent, but not begun";
  EXPECT_EQ(task->timeline.begin_time, SteadyTime());
  worker_->set_begins(true);
  time_.Advance(absl::Milliseconds(2));
  EXPECT_THAT(states, ElementsAre(TaskState::kDispatched, TaskState::kDispatched));
  EXPECT_EQ(task->timeline.begin_time, core_->Now());
}

}  // namespace
}  // namespace stride::engine
