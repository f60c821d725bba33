#include "server/engine/scheduling/worker_starter.h"

#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/error.h"
#include "server/base/system_error.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes what happens to workers.
class FakeEvents : public WorkerEvents, public WorkerReports, public CancelAnswers {
 public:
  void WorkerStarted(GlobalTransaction&, DeviceQueue& queue) override { Note("started", queue); }
  void WorkerNotStarted(GlobalTransaction&, DeviceQueue& queue,
                        const absl::Status& status) override {
    Note("not started", queue);
    error_ = status;
  }
  void WorkerEnds(GlobalTransaction&, DeviceQueue& queue) override { Note("ends", queue); }
  void WorkerGone(GlobalTransaction&) override { events_.push_back("gone"); }
  void TasksDone(TenantTransaction&, DeviceQueue& queue,
                 absl::Span<const wire::TaskResult>) override {
    queue.sending.in_flight.clear();
    Note("done", queue);
  }
  void Printed(TenantTransaction&, DeviceQueue& queue, uint64_t, std::string_view,
               uint64_t) override {
    Note("printed", queue);
  }
  void Answered(TenantTransaction&, DeviceQueue& queue, uint64_t, bool) override {
    Note("cancelled", queue);
  }
  void WorkerDied(GlobalTransaction&, DeviceQueue& queue, const broker::WorkerDeath&) override {
    Note("died", queue);
  }

  std::vector<std::string> Take() { return std::exchange(events_, {}); }
  const absl::Status& error() const { return error_; }

 private:
  void Note(const std::string& what, const DeviceQueue& queue) {
    events_.push_back(queue.tenant.value + " " + what);
  }

  std::vector<std::string> events_;
  absl::Status error_;
};

class WorkerStarterTest : public PartTest {
 protected:
  void Start(EngineOptions options = {},
             std::vector<wire::DeviceDescription> devices = {HostDevice(0)}) {
    PartTest::Start(std::move(devices), std::move(options));
    health_ = std::make_unique<HealthWatch>(
        core_.get(),
        HealthWatch::Hooks{
            .changed = [](GlobalTransaction&, int) {},
            .give_way = [this](GlobalTransaction& transaction,
                               int device) { return starter_->GiveWay(transaction, device); },
            .tried = [this](GlobalTransaction& transaction,
                            int device) { starter_->ProbeEnded(transaction, device); }});
    starter_ = std::make_unique<WorkerStarter>(
        core_.get(), queues_.get(), health_.get(),
        WorkerStarter::Receivers{.events = &events_, .reports = &events_, .cancels = &events_});
  }
  void TearDown() override {
    if (starter_ != nullptr) {
      InAll([&](GlobalTransaction&) { core_->ending = true; });
      tasks_.clear();
    }
    PartTest::TearDown();
  }

  // The queue has a task to prepare, and requests a worker for it.
  DeviceQueue& Request(const std::string& tenant, int device = 0) {
    DeviceQueue& queue = QueueOf(tenant, device);
    tasks_.push_back(Prepared(queue));
    In(tenant, [&](TenantTransaction& transaction) { starter_->Request(transaction, queue); });
    return queue;
  }
  // The queue's task is sent: the worker has it.
  void Send(DeviceQueue& queue) {
    for (const auto& task : queue.preparing.All()) {
      queue.preparing.Remove(*task);
      queue.sending.in_flight.push_back({queue.sending.next_sequence++, task, true});
    }
  }
  // The queue's tasks have ended.
  void End(DeviceQueue& queue) {
    for (const auto& task : queue.preparing.All()) queue.preparing.Remove(*task);
    queue.sending.in_flight.clear();
    queue.last_used = core_->Now();
  }
  void Tend() {
    InAll([&](GlobalTransaction& transaction) { starter_->Tend(transaction); });
    time_.RunAll();
  }
  // Has the bounds of the options take effect.
  void Measure() {
    starter_->Measure([](GlobalTransaction&, int) { return WorkerStarter::PlaceUse{}; });
  }

  FakeEvents events_;
  std::unique_ptr<HealthWatch> health_;
  std::unique_ptr<WorkerStarter> starter_;
  std::vector<std::shared_ptr<Task>> tasks_;
};

TEST_F(WorkerStarterTest, RequestStartsOneWorker) {
  Start();
  DeviceQueue& queue = Request("a");
  In("a", [&](TenantTransaction& transaction) { starter_->Request(transaction, queue); });
  EXPECT_EQ(queue.worker, nullptr) << "no start blocks a transaction";
  time_.RunAll();
  EXPECT_NE(queue.worker, nullptr);
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
  EXPECT_EQ(broker_->num_starts(), 1);
}

TEST_F(WorkerStarterTest, UnneededRequestStartsNoWorker) {
  Start();
  DeviceQueue& queue = QueueOf("a");
  In("a", [&](TenantTransaction& transaction) { starter_->Request(transaction, queue); });
  time_.RunAll();
  EXPECT_EQ(broker_->num_starts(), 0) << "the queue's tasks have ended before";
  Request("a");
  time_.RunAll();
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
}

TEST_F(WorkerStarterTest, QueuesWaitInLine) {
  Start({.max_workers = 1});
  Measure();
  DeviceQueue& a = Request("a");
  DeviceQueue& b = Request("b");
  Request("c");
  time_.RunAll();
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
  End(a);
  Tend();
  EXPECT_THAT(events_.Take(), ElementsAre("a ends", "gone", "b started"));
  End(b);
  Tend();
  EXPECT_THAT(events_.Take(), ElementsAre("b ends", "gone", "c started"));
}

TEST_F(WorkerStarterTest, LeastRecentlyUsedIdleWorkerGivesWay) {
  Start();
  DeviceQueue& a = Request("a");
  DeviceQueue& b = Request("b");
  DeviceQueue& busy = Request("busy");
  time_.RunAll();
  events_.Take();
  Send(busy);
  End(b);
  time_.Advance(absl::Seconds(1));
  End(a);
  InAll([&](GlobalTransaction& transaction) {
    EXPECT_TRUE(starter_->GiveWay(transaction, std::nullopt));
    EXPECT_EQ(b.worker, nullptr);
    EXPECT_FALSE(starter_->GiveWay(transaction, std::nullopt, /*except=*/&a));
    EXPECT_TRUE(starter_->GiveWay(transaction, 0));
    EXPECT_FALSE(starter_->GiveWay(transaction, 0)) << "a busy one stays";
  });
  EXPECT_THAT(events_.Take(), ElementsAre("b ends", "a ends"));
  EXPECT_NE(busy.worker, nullptr);
}

TEST_F(WorkerStarterTest, IdleWorkerEndsAfterItsTime) {
  Start({.worker_idle_timeout = absl::Minutes(5)});
  DeviceQueue& queue = Request("a");
  time_.RunAll();
  End(queue);
  time_.Advance(absl::Minutes(4));
  Tend();
  EXPECT_NE(queue.worker, nullptr);
  time_.Advance(absl::Minutes(1));
  Tend();
  EXPECT_THAT(events_.Take(), ElementsAre("a started", "a ends", "gone"));
}

// A copy, a loop in tiles or a thread that waits also needs the worker.
TEST_F(WorkerStarterTest, WorkerInUseIsNotIdle) {
  Start({.worker_idle_timeout = absl::ZeroDuration()});
  DeviceQueue& queue = Request("a");
  time_.RunAll();
  Send(queue);
  Tend();
  EXPECT_NE(queue.worker, nullptr);
  End(queue);
  for (int* use : {&queue.num_copies, &queue.contents.num_waiting}) {
    *use = 1;
    Tend();
    EXPECT_NE(queue.worker, nullptr);
    *use = 0;
  }
  for (bool* use : {&queue.arenas.growing, &queue.streaming}) {
    *use = true;
    Tend();
    EXPECT_NE(queue.worker, nullptr);
    *use = false;
  }
  Tend();
  EXPECT_EQ(queue.worker, nullptr);
}

TEST_F(WorkerStarterTest, BusyWorkerYieldsAfterItsTurn) {
  Start({.worker_turn = absl::Seconds(1), .max_workers = 1});
  Measure();
  DeviceQueue& a = Request("a");
  time_.RunAll();
  Send(a);
  tasks_.push_back(Prepared(a));  // more to come
  DeviceQueue& b = Request("b");
  time_.RunAll();
  Tend();
  EXPECT_FALSE(a.start.yields()) << "its turn is not over";
  time_.Advance(absl::Seconds(1));
  pumped_.clear();
  Tend();
  EXPECT_TRUE(a.start.yields());
  EXPECT_THAT(pumped_, ElementsAre(&a)) << "its time slice ends";
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
  a.sending.in_flight.clear();
  Tend();
  EXPECT_THAT(events_.Take(), ElementsAre("a ends", "gone", "b started"));
  EXPECT_FALSE(a.start.yields());
  // Its own request comes after those that waited.
  End(b);
  Tend();
  EXPECT_THAT(events_.Take(), ElementsAre("b ends", "gone", "a started"));
}

TEST_F(WorkerStarterTest, NoQueueYieldsOnceNoneWaits) {
  Start({.worker_turn = absl::ZeroDuration(), .max_workers = 1});
  Measure();
  DeviceQueue& a = Request("a");
  time_.RunAll();
  Send(a);
  DeviceQueue& b = Request("b");
  time_.RunAll();
  time_.Advance(absl::Milliseconds(1));
  Tend();
  ASSERT_TRUE(a.start.yields());
  a.worker->Kill(absl::CancelledError("test"));
  time_.RunAll();
  EXPECT_FALSE(a.start.yields()) << "a death makes room too";
  EXPECT_NE(b.worker, nullptr);
  EXPECT_THAT(events_.Take(), ElementsAre("a started", "a died", "b started"));
}

TEST_F(WorkerStarterTest, ReportsOfAnEndedWorkerAreIgnored) {
  Start();
  DeviceQueue& queue = Request("a");
  time_.RunAll();
  auto first = broker_->WaitForWorker(1);
  End(queue);
  InAll([&](GlobalTransaction& transaction) { starter_->GiveWay(transaction, 0); });
  Request("a");
  time_.RunAll();
  EXPECT_NE(queue.worker, first);
  EXPECT_THAT(events_.Take(), ElementsAre("a started", "a ends", "gone", "a started"));
}

// A start lacks descriptors: an idle worker ends for it.
TEST_F(WorkerStarterTest, LackEndsAnIdleWorker) {
  Start({}, {HostDevice(0), HostDevice(1)});
  DeviceQueue& other = Request("a", 1);
  time_.RunAll();
  End(other);
  broker_->set_most_workers(1, SystemError(EMFILE, "making a pipe"));
  DeviceQueue& queue = Request("b", 0);
  time_.Advance(absl::Seconds(2));
  EXPECT_EQ(other.worker, nullptr) << "a descriptor may come from any device";
  EXPECT_NE(queue.worker, nullptr);
  EXPECT_THAT(events_.Take(), ElementsAre("a started", "a ends", "gone", "b started"));
}

TEST_F(WorkerStarterTest, LackEndsTheRequestAfterThePatience) {
  Start({.start_patience = absl::Seconds(10)});
  DeviceQueue& busy = Request("a");
  time_.RunAll();
  Send(busy);
  broker_->set_most_workers(1, SystemError(EMFILE, "making a pipe"));
  Request("b");
  time_.Advance(absl::Seconds(9));
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
  time_.Advance(absl::Seconds(2));
  EXPECT_THAT(events_.Take(), ElementsAre("b not started"));
  EXPECT_TRUE(absl::IsResourceExhausted(events_.error())) << events_.error();
  EXPECT_EQ(MetadataOf(events_.error(), "resource"), "file descriptors");
}

TEST_F(WorkerStarterTest, LackWithoutOtherWorkersEndsTheRequestAtOnce) {
  Start();
  broker_->set_most_workers(0, absl::ResourceExhaustedError("out of memory"));
  Request("a");
  time_.RunAll();
  EXPECT_THAT(events_.Take(), ElementsAre("a not started"));
  EXPECT_EQ(ReasonOf(events_.error()), v1::ERROR_REASON_DEVICE_MEMORY);
  EXPECT_EQ(MetadataOf(events_.error(), "device"), "devices/cpu:0");
}

TEST_F(WorkerStarterTest, WorkerThatDiesDuringItsStartIsReplaced) {
  Start();
  broker_->set_die_at_start(6);
  DeviceQueue& queue = Request("a");
  time_.Advance(absl::Minutes(1));
  EXPECT_NE(queue.worker, nullptr);
  EXPECT_EQ(broker_->num_starts(), 7);
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
}

TEST_F(WorkerStarterTest, RequestEndsWhenWorkersKeepDying) {
  Start({.start_patience = absl::Milliseconds(1)});
  broker_->set_die_at_start(1000);
  Request("a");
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(events_.Take(), ElementsAre("a not started"));
  EXPECT_EQ(ReasonOf(events_.error()), v1::ERROR_REASON_DEVICE_NOT_SERVING);
  EXPECT_EQ(broker_->num_starts(), 4);
  broker_->set_die_at_start(0);
  Request("a");
  time_.RunAll();
  EXPECT_THAT(events_.Take(), ElementsAre("a started")) << "not for good";
}

// The queue waits for a probe's verdict about the device.
TEST_F(WorkerStarterTest, ProbeDecidesWhetherTheDeviceIsToBlame) {
  Start({.health = {.interval = absl::Hours(1), .max_failures = 2}});
  broker_->set_ill(0, true);
  DeviceQueue& queue = Request("a");
  time_.RunAll();
  EXPECT_THAT(events_.Take(), IsEmpty());
  broker_->set_ill(0, false);
  InAll([&](GlobalTransaction& transaction) { starter_->ProbeEnded(transaction, 0); });
  time_.RunAll();
  EXPECT_NE(queue.worker, nullptr) << "the device serves";
  EXPECT_THAT(events_.Take(), ElementsAre("a started"));
}

TEST_F(WorkerStarterTest, RequestEndsOnADeviceThatIsToBlame) {
  Start({.health = {.interval = absl::Hours(1), .max_failures = 1}});
  broker_->set_ill(0, true);
  Request("a");
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(events_.Take(), ElementsAre("a not started"));
  EXPECT_FALSE(health_->Serves(0));
}

TEST_F(WorkerStarterTest, AwaitReturnsWithTheWorker) {
  Start();
  DeviceQueue& queue = QueueOf("a");
  GlobalTransaction transaction(*core_);
  EXPECT_TRUE(starter_->AwaitWorker(transaction, queue, core_->Now() + absl::Seconds(1)).ok());
  EXPECT_NE(queue.worker, nullptr);
}

TEST_F(WorkerStarterTest, AwaitEndsAtItsDeadline) {
  Start({.max_workers = 1});
  Measure();
  Send(Request("a"));
  time_.RunAll();
  DeviceQueue& queue = QueueOf("b");
  GlobalTransaction transaction(*core_);
  const absl::Status status =
      starter_->AwaitWorker(transaction, queue, core_->Now() + absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(WorkerStarterTest, AwaitReturnsTheErrorOfTheStart) {
  Start();
  broker_->set_most_workers(0, SystemError(EMFILE, "making a pipe"));
  DeviceQueue& queue = QueueOf("a");
  GlobalTransaction transaction(*core_);
  const absl::Status status =
      starter_->AwaitWorker(transaction, queue, SteadyTime::InfiniteFuture());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(WorkerStarterTest, ThreadGetsAWorkerWithTheArenaMapped) {
  Start();
  DeviceQueue& queue = QueueOf("a");
  auto worker = starter_->BlockingWorker(queue, nullptr);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(*worker, queue.worker);
  EXPECT_EQ(*starter_->BlockingWorker(queue, nullptr), queue.worker) << "it lives";
  EXPECT_EQ(broker_->num_starts(), 1);
}

// The death is reported later than a send fails.
TEST_F(WorkerStarterTest, ThreadGetsTheSuccessorOfADeadWorker) {
  Start();
  DeviceQueue& queue = QueueOf("a");
  auto first = *starter_->BlockingWorker(queue, nullptr);
  std::static_pointer_cast<FakeWorker>(first)->Shutdown();
  auto second = starter_->BlockingWorker(queue, nullptr);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(*second, first);
}

// Arrays take the room of workers.
TEST_F(WorkerStarterTest, DeviceMemoryBoundsItsWorkers) {
  Start({}, {StagedDevice(0, int64_t{64} << 30)});
  uint64_t arena_bytes = 0;
  auto most = [&] {
    starter_->Measure([&](GlobalTransaction&, int place) {
      return WorkerStarter::PlaceUse{.arena_bytes = place == 0 ? arena_bytes : 0};
    });
    GlobalTransaction transaction(*core_);
    return starter_->most(transaction, 0);
  };
  const int empty = most();
  EXPECT_EQ(empty, static_cast<int>((64.0 - 2) * 1024 / 640));
  arena_bytes = uint64_t{32} << 30;
  EXPECT_EQ(most(), static_cast<int>((32.0 - 2) * 1024 / 640));
}

}  // namespace
}  // namespace stride::engine
