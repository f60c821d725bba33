#include "server/engine/scheduling/cancellation.h"

#include <memory>
#include <string>
#include <vector>

#include "server/base/error.h"
#include "server/engine/scheduling/hazards.h"
#include "tests/unit/engine/fake_task_events.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kGrace = absl::Seconds(2);

class CancellationTest : public PartTest {
 protected:
  CancellationTest() {
    EngineOptions options;
    options.kill_grace = kGrace;
    Start({HostDevice(0)}, std::move(options));
    cancellation_ = std::make_unique<Cancellation>(core_.get(), &events_);
    queue_ = &QueueOf("t");
    queue_->worker = *broker_->StartWorker(0);
    worker_ = broker_->WaitForWorker(1);
    worker_->HoldCancels();  // the test answers
  }
  void TearDown() override {
    queue_->sending.in_flight.clear();
    queue_->sending.recalls.clear();
    for (const auto& task : tasks_) {
      ReleaseAccesses(*task);
      task->uses.clear();
    }
    PartTest::TearDown();
  }

  // A task in the worker's queue, after `num_fills` launches that clear its outputs.
  std::shared_ptr<Task> Sent(const std::string& label, Uses uses, int num_fills = 0) {
    auto task = NewTask(*queue_, std::move(uses));
    task->label = label;
    task->queue = queue_;
    task->state = TaskState::kDispatched;
    RegisterAccesses(task);
    task->sent.first_sequence = queue_->sending.next_sequence;
    for (int i = 0; i < num_fills; ++i)
      queue_->sending.in_flight.push_back({queue_->sending.next_sequence++, task, false});
    queue_->sending.in_flight.push_back({queue_->sending.next_sequence++, task, true});
    task->sent.last_sequence = queue_->sending.next_sequence - 1;
    tasks_.push_back(task);
    return task;
  }
  static Uses Makes(const std::shared_ptr<store::Buffer>& buffer) {
    return {Use{.buffer = buffer, .write = true, .fresh = true}};
  }
  static Uses Reads(const std::shared_ptr<store::Buffer>& buffer) {
    return {Use{.buffer = buffer, .read = true}};
  }
  static Uses Changes(const std::shared_ptr<store::Buffer>& buffer) {
    return {Use{.buffer = buffer, .read = true, .write = true}};
  }
  void Stop(const std::shared_ptr<Task>& task) {
    In("t", [&](TenantTransaction& transaction) { cancellation_->Cancel(transaction, task); });
  }
  void Answer(uint64_t sequence, bool taken) {
    In("t", [&](TenantTransaction& transaction) {
      cancellation_->Answered(transaction, *queue_, sequence, taken);
    });
  }
  // The first launch in flight ends.
  void EndFirst() {
    queue_->sending.in_flight.pop_front();
    In("t", [&](TenantTransaction&) { cancellation_->BeginGrace(*queue_); });
  }

  FakeTaskEvents events_;
  std::unique_ptr<Cancellation> cancellation_;
  DeviceQueue* queue_;
  std::shared_ptr<FakeWorker> worker_;
  std::vector<std::shared_ptr<Task>> tasks_;
};

// One command: the worker might begin a dependent between two.
TEST_F(CancellationTest, GrantedCancelTakesDependentsToo) {
  auto x = NewBuffer("t"), y = NewBuffer("t");
  Sent("running", Makes(y));
  auto maker = Sent("maker", Makes(x));
  auto reader = Sent("reader", Reads(x));
  Sent("other", Reads(y));
  Stop(maker);
  EXPECT_THAT(worker_->cancels(), ElementsAre(ElementsAre(2u, 3u)));
  EXPECT_EQ(reader->cancel.num_recalls, 1) << "no dependent is sent until the answer";
  EXPECT_THAT(events_.Take(), IsEmpty());
  Answer(2, /*taken=*/true);
  EXPECT_THAT(events_.Take(), ElementsAre("requeue maker", "requeue reader", "end maker",
                                          "evaluate maker", "evaluate reader"));
  EXPECT_EQ(maker->result.message(), "the operation was cancelled before it ran");
  EXPECT_EQ(queue_->sending.in_flight[1].task, nullptr) << "the result of the launch means nothing";
  EXPECT_NE(queue_->sending.in_flight[3].task, nullptr);
  EXPECT_THAT(pumped_, ElementsAre(queue_));
  time_.Advance(2 * kGrace);
  EXPECT_TRUE(worker_->alive());
}

TEST_F(CancellationTest, RefusedCancelEndsWithTheTask) {
  auto x = NewBuffer("t");
  auto running = Sent("running", Makes(x));
  auto next = Sent("next", Reads(x));
  Stop(running);
  Answer(1, /*taken=*/false);
  EXPECT_EQ(next->cancel.num_recalls, 0);
  EXPECT_THAT(events_.Take(), ElementsAre("evaluate next")) << "it may be sent now";
  time_.Advance(kGrace / 2);
  EndFirst();
  time_.Advance(kGrace);
  EXPECT_TRUE(worker_->alive());
  EXPECT_FALSE(queue_->killed);
}

TEST_F(CancellationTest, RunningTaskIsKilledAfterTheGrace) {
  auto running = Sent("running", Changes(NewBuffer("t")));
  Stop(running);
  Answer(1, /*taken=*/false);
  time_.Advance(kGrace - absl::Milliseconds(1));
  EXPECT_TRUE(worker_->alive());
  time_.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(worker_->alive());
  EXPECT_TRUE(queue_->killed);
}

// A driver call may block the worker's command loop until a kernel ends.
TEST_F(CancellationTest, GraceNeedsNoAnswer) {
  Stop(Sent("running", Changes(NewBuffer("t"))));
  time_.Advance(kGrace);
  EXPECT_FALSE(worker_->alive());
}

TEST_F(CancellationTest, GraceBeginsWhenTheTaskIsFirst) {
  Sent("running", Makes(NewBuffer("t")));
  auto queued = Sent("queued", Changes(NewBuffer("t")));
  Stop(queued);
  Answer(2, /*taken=*/false);
  time_.Advance(2 * kGrace);
  EXPECT_TRUE(worker_->alive()) << "another task is running";
  EndFirst();
  time_.Advance(kGrace);
  EXPECT_FALSE(worker_->alive());
}

TEST_F(CancellationTest, TaskWithAnEndedLaunchHasBegun) {
  auto task = Sent("task", Makes(NewBuffer("t")), /*num_fills=*/1);
  EndFirst();
  Stop(task);
  EXPECT_THAT(worker_->cancels(), IsEmpty());
  EXPECT_TRUE(task->cancel.recall_refused);
}

// A stream removes nothing: the task runs, in memory that stays pinned.
TEST_F(CancellationTest, RefusedTaskWithOwnOutputsIsAbandoned) {
  auto x = NewBuffer("t");
  Sent("running", Makes(NewBuffer("t")));
  auto queued = Sent("queued", Makes(x));
  Stop(queued);
  Answer(2, /*taken=*/false);
  EXPECT_THAT(events_.Take(), ElementsAre("abandon queued", "end queued", "evaluate queued"));
  EXPECT_EQ(queue_->sending.in_flight[1].task, nullptr);
  EXPECT_EQ(queue_->sending.in_flight[1].given_up, queued);
  EXPECT_EQ(x->pin_count, 1);
  // An endless one does not block those after it.
  EndFirst();
  time_.Advance(kGrace);
  EXPECT_FALSE(worker_->alive());
}

TEST_F(CancellationTest, TaskThatChangesAnArrayIsNotAbandoned) {
  Sent("running", Makes(NewBuffer("t")));
  auto queued = Sent("queued", Changes(NewBuffer("t")));
  Stop(queued);
  Answer(2, /*taken=*/false);
  EXPECT_THAT(events_.Take(), IsEmpty());
  EXPECT_EQ(queue_->sending.in_flight[1].task, queued);
}

TEST_F(CancellationTest, UnansweredCancelAbandonsAfterTheGrace) {
  Sent("running", Makes(NewBuffer("t")));
  auto queued = Sent("queued", Makes(NewBuffer("t")));
  Stop(queued);
  time_.Advance(kGrace - absl::Milliseconds(1));
  EXPECT_THAT(events_.Take(), IsEmpty());
  time_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(events_.Take(), ElementsAre("abandon queued", "end queued", "evaluate queued"));
  Answer(2, /*taken=*/true);
  EXPECT_THAT(events_.Take(), IsEmpty()) << "too late";
}

TEST_F(CancellationTest, WaitingTaskEndsUnrun) {
  auto task = NewTask(*queue_);
  task->label = "waiting";
  Stop(task);
  EXPECT_THAT(events_.Take(), ElementsAre("end waiting"));
  EXPECT_EQ(ReasonOf(task->result), v1::ERROR_REASON_CANCELLED);
  Stop(task);
  EXPECT_THAT(events_.Take(), IsEmpty()) << "it has ended";
}

// Arrays that an upload has changed in part have its error.
TEST_F(CancellationTest, HostAccessCompletesWithTheError) {
  auto task = NewTask(*queue_);
  task->label = "upload";
  task->options.host_access = true;
  task->state = TaskState::kDispatched;
  Stop(task);
  EXPECT_THAT(events_.Take(), ElementsAre("complete upload"));
  EXPECT_TRUE(absl::IsCancelled(task->result));
}

TEST_F(CancellationTest, ConductorStopsOnceAndEndsTheTask) {
  struct FakeConductor : public Conductor {
    void Run() override {}
    void Stop(TenantTransaction&) override { ++num_stops; }
    int num_stops = 0;
  };
  auto conductor = std::make_shared<FakeConductor>();
  auto task = NewTask(*queue_);
  task->stream = conductor;
  task->state = TaskState::kDispatched;
  Stop(task);
  Stop(task);
  EXPECT_EQ(conductor->num_stops, 1);
  EXPECT_EQ(task->cancel.stop.message(), "the operation was cancelled while it ran");
  EXPECT_THAT(events_.Take(), IsEmpty()) << "the conductor ends it";
}

TEST_F(CancellationTest, DeadlineHasItsOwnError) {
  auto task = NewTask(*queue_);
  In("t",
     [&](TenantTransaction& transaction) { cancellation_->DeadlinePassed(transaction, task); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(task->result));
  EXPECT_EQ(ReasonOf(task->result), v1::ERROR_REASON_DEADLINE);
}

TEST_F(CancellationTest, AllTasksOfATenantAreCancelled) {
  auto first = NewTask(*queue_), last = NewTask(*queue_);
  first->label = "first";
  last->label = "last";
  cancellation_->CancelAll(queue_->tenant, {first, nullptr, last});
  EXPECT_THAT(events_.Take(), ElementsAre("end first", "end last"));
}

TEST_F(CancellationTest, SecondStopSendsNoSecondCommand) {
  auto task = Sent("task", Makes(NewBuffer("t")));
  Stop(task);
  Stop(task);
  EXPECT_THAT(worker_->cancels(), ElementsAre(ElementsAre(1u)));
}

}  // namespace
}  // namespace stride::engine
