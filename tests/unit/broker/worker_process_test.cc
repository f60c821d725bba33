#include "server/broker/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/wire/status.h"
#include "tests/support/await.h"
#include "tests/support/descriptors.h"
#include "tests/unit/broker/recorder.h"

namespace stride::broker {
namespace {

using ::stride::testing::NumDescriptors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class WorkerProcessTest : public ::testing::Test {
 protected:
  void TearDown() override {
    worker_.reset();
    list_.EndAll();
  }

  WorkerOptions Options() {
    WorkerOptions options;
    options.executable = std::string(FAKE_WORKERS) + "/stride-worker-fake";
    options.device.set_id("fake:0");
    options.staging_bytes = 1 << 20;
    options.slot_bytes = 64 << 10;
    options.start_timeout = absl::Seconds(20);
    return options;
  }

  void StartAdopted() { StartAdopted(recorder_.callbacks()); }
  void StartAdopted(WorkerCallbacks callbacks) {
    auto worker = WorkerProcess::Start(Options(), &spawner_, &list_);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    worker_->Adopt(std::move(callbacks));
  }

  absl::Status Submit(std::vector<std::string> labels) {
    wire::TaskPacket packet;
    for (std::string& label : labels) {
      wire::Task task;
      task.set_sequence(++sequence_);
      task.set_label(std::move(label));
      packet.Add(task);
    }
    return worker_->Submit(packet);
  }

  // Environment variables for the next processes only.
  void UseEnvironment(const std::string& variable) {
    std::vector<std::string> environment = WorkerEnvironment();
    environment.push_back(variable);
    other_spawner_ = std::make_unique<Spawner>(environment);
  }

  Spawner spawner_{WorkerEnvironment()};
  std::unique_ptr<Spawner> other_spawner_;
  WorkerList list_;
  JournalWriter recorder_;
  std::shared_ptr<Worker> worker_;
  uint64_t sequence_ = 0;
};

TEST_F(WorkerProcessTest, TasksGiveResultsInOrder) {
  StartAdopted();
  EXPECT_TRUE(worker_->alive());
  ASSERT_TRUE(Submit({"a", "fail", "c"}).ok());
  auto results = recorder_.WaitForResults(3);
  ASSERT_THAT(results, SizeIs(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[i].sequence(), i + 1u);
  EXPECT_EQ(results[1].status().message(), "the kernel failed");
  EXPECT_EQ(results[2].run_seconds(), 0.25);
}

TEST_F(WorkerProcessTest, ResultsAreKeptUntilAdoption) {
  auto worker = WorkerProcess::Start(Options(), &spawner_, &list_);
  ASSERT_TRUE(worker.ok());
  worker_ = *std::move(worker);
  ASSERT_TRUE(Submit({"a", "exit 3"}).ok());
  // Dead before its adoption: both the result and the death are reported then.
  worker_->Adopt(recorder_.callbacks());
  EXPECT_THAT(recorder_.WaitForResults(1), SizeIs(1));
  EXPECT_TRUE(recorder_.WaitForDeath().has_value());
}

// The receiver of results holds a lock that other threads need.
TEST_F(WorkerProcessTest, PendingResultsAreDeliveredInOneBatch) {
  absl::Notification taken, go_on;
  absl::Mutex mutex;
  std::vector<size_t> sizes;
  StartAdopted({.tasks_done = [&](absl::Span<const wire::TaskResult> results) {
    absl::MutexLock lock(&mutex);
    sizes.push_back(results.size());
    if (sizes.size() > 1) return;
    taken.Notify();
    AWAIT(go_on.HasBeenNotified());
  }});
  ASSERT_TRUE(Submit({"a"}).ok());
  AWAIT(taken.HasBeenNotified());
  // Each is a separate event.
  for (uint64_t i = 2; i <= 5; ++i) {
    ASSERT_TRUE(Submit({"b"}).ok());
    AWAIT(worker_->progress().completed_sequence >= i);
  }
  ASSERT_TRUE(Submit({"wait"}).ok());
  go_on.Notify();
  absl::MutexLock lock(&mutex);
  auto all = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return std::accumulate(sizes.begin(), sizes.end(), size_t{0}) == 5;
  };
  ASSERT_TRUE(Await(mutex, absl::Condition(&all), Now() + absl::Seconds(20)));
  EXPECT_THAT(sizes, ElementsAre(1, 4));
}

TEST_F(WorkerProcessTest, ManyTasksTakeSeveralPackets) {
  StartAdopted();
  std::vector<std::string> labels(20000, std::string(40, 'x'));
  ASSERT_TRUE(Submit(labels).ok());
  EXPECT_THAT(recorder_.WaitForResults(20000), SizeIs(20000));
}

TEST_F(WorkerProcessTest, RefusesWrongSequencesAndOversizeTasks) {
  StartAdopted();
  sequence_ = 5;
  EXPECT_TRUE(absl::IsInvalidArgument(Submit({"a"})));
  sequence_ = 0;
  absl::Status large = Submit({std::string(200 << 10, 'x')});
  EXPECT_EQ(ReasonOf(large), v1::ERROR_REASON_SIZE_LIMIT);
  sequence_ = 0;
  EXPECT_TRUE(Submit({"a"}).ok());
  EXPECT_THAT(recorder_.WaitForResults(1), SizeIs(1));
}

TEST_F(WorkerProcessTest, CopiesGoThroughStaging) {
  StartAdopted();
  auto arena = CreateMemoryFile("arena", 4096);
  ASSERT_TRUE(worker_->MapArena(1, 4096, arena->get()).ok());
  StagingPool::Slot slot = worker_->staging().TryAcquire();
  std::memcpy(slot.data, "hello", 5);
  worker_->Copy(true, 1, 100, slot.offset, 5, recorder_.copy_done());
  worker_->Copy(false, 1, 102, slot.offset + 50, 3, recorder_.copy_done());
  worker_->Copy(true, 9, 0, 0, 5, recorder_.copy_done());
  auto copies = recorder_.WaitForCopies(3);
  ASSERT_THAT(copies, SizeIs(3));
  EXPECT_TRUE(copies[0].ok() && copies[1].ok());
  EXPECT_EQ(Text(copies[2]), "no such arena");
  EXPECT_EQ(std::memcmp(slot.data + 50, "llo", 3), 0);
  auto map = MemoryMap::Map(arena->get(), 4096, false);
  EXPECT_EQ(map->view().substr(100, 5), "hello");
}

TEST_F(WorkerProcessTest, CopiesGoThroughRegions) {
  StartAdopted();
  auto arena = CreateMemoryFile("arena", 4096);
  auto region = CreateMemoryFile("region", 8192);
  ASSERT_TRUE(worker_->MapArena(1, 4096, arena->get()).ok());
  ASSERT_TRUE(worker_->MapRegion(7, 8192, region->get()).ok());
  auto map = MemoryMap::Map(region->get(), 8192, true);
  std::memcpy(map->data() + 5000, "hello", 5);
  worker_->CopyRegion(true, 1, 100, 7, 5000, 5, recorder_.copy_done());
  worker_->CopyRegion(false, 1, 102, 7, 50, 3, recorder_.copy_done());
  worker_->CopyRegion(true, 1, 0, 8, 0, 5, recorder_.copy_done());
  ASSERT_TRUE(worker_->UnmapRegion(7).ok());
  worker_->CopyRegion(true, 1, 0, 7, 0, 5, recorder_.copy_done());
  auto copies = recorder_.WaitForCopies(4);
  ASSERT_THAT(copies, SizeIs(4));
  EXPECT_TRUE(copies[0].ok() && copies[1].ok());
  EXPECT_EQ(Text(copies[2]), "no such region");
  EXPECT_EQ(Text(copies[3]), "no such region");
  EXPECT_EQ(std::memcmp(map->data() + 50, "llo", 3), 0);
}

TEST_F(WorkerProcessTest, WorkerArenasArriveAsDescriptors) {
  StartAdopted();
  auto arena = worker_->CreateArena(4, 8192);
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ(MemoryFileSize(arena->get()).value(), 8192u);
}

TEST_F(WorkerProcessTest, ArenaWaiterWakesWhenTheWorkerDies) {
  StartAdopted();
  auto arena = worker_->CreateArena(4, 14);
  EXPECT_EQ(ReasonOf(arena.status()), v1::ERROR_REASON_WORKER_LOST);
}

TEST_F(WorkerProcessTest, ModulesLoad) {
  StartAdopted();
  absl::Mutex mutex;
  std::vector<absl::StatusOr<wire::ModuleLoaded>> loads;
  for (uint64_t id : {1, 2}) {
    CompiledModule module;
    std::string object = id == 1 ? "good" : "bad";
    module.id = id;
    module.size = object.size();
    module.object = *CreateSealedCopy("object", object);
    ASSERT_TRUE(worker_
                    ->LoadModule(module,
                                 [&](absl::StatusOr<wire::ModuleLoaded> loaded) {
                                   absl::MutexLock lock(&mutex);
                                   loads.push_back(std::move(loaded));
                                 })
                    .ok());
  }
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(
      +[](decltype(loads)* loads) { return loads->size() == 2; }, &loads));
  ASSERT_TRUE(loads[0].ok());
  EXPECT_EQ(loads[0]->kernels(0).entry(), "good");
  EXPECT_EQ(Text(loads[1].status()), "the object is bad");
}

// --- deaths ---

struct DeathCase {
  std::string label;
  v1::ErrorReason reason;
  uint64_t faulting_sequence;
  std::string text;
};

class DeathTest : public WorkerProcessTest, public ::testing::WithParamInterface<DeathCase> {};

TEST_P(DeathTest, CauseOfDeathIsReported) {
  StartAdopted();
  worker_->Copy(true, 1, 0, 0, 13, recorder_.copy_done());  // never ends by itself
  ASSERT_TRUE(Submit({"a", GetParam().label, "c"}).ok());
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(ReasonOf(death->cause), GetParam().reason) << death->cause;
  // Workers of a sanitizer build write their reports to the daemon's own standard error.
#if !defined(__SANITIZE_ADDRESS__) && !defined(STRIDE_THREAD_SANITIZER)
  EXPECT_THAT(Text(death->cause), HasSubstr(GetParam().text));
#endif
  EXPECT_EQ(death->faulting_sequence, GetParam().faulting_sequence);
  const absl::Status copy = recorder_.WaitForCopies(1)[0];
  EXPECT_TRUE(ReasonOf(copy) == v1::ERROR_REASON_WORKER_LOST || copy == death->cause) << copy;
  EXPECT_THAT(recorder_.WaitForResults(1), SizeIs(::testing::Ge(1u)));

  EXPECT_FALSE(worker_->alive());
  EXPECT_TRUE(absl::IsUnavailable(Submit({"d"})));
  EXPECT_TRUE(absl::IsUnavailable(worker_->UnmapArena(1)));
  EXPECT_TRUE(absl::IsUnavailable(worker_->CreateArena(5, 4096).status()));
  worker_->Copy(true, 1, 0, 0, 1, recorder_.copy_done());
  EXPECT_TRUE(absl::IsUnavailable(recorder_.WaitForCopies(2)[1]));
  EXPECT_TRUE(absl::IsUnavailable(worker_->MapRegion(1, 4096, 0)));
  worker_->CopyRegion(true, 1, 0, 1, 0, 1, recorder_.copy_done());
  EXPECT_TRUE(absl::IsUnavailable(recorder_.WaitForCopies(3)[2]));
  EXPECT_FALSE(worker_->staging().Acquire(SteadyTime::InfiniteFuture()));
  EXPECT_EQ(kill(worker_->pid(), 0), -1) << "not reaped";
  EXPECT_EQ(recorder_.num_deaths(), 1);
}

const auto kFault = v1::ERROR_REASON_KERNEL_FAULT;
const auto kLost = v1::ERROR_REASON_WORKER_LOST;
INSTANTIATE_TEST_SUITE_P(Causes, DeathTest,
                         ::testing::Values(DeathCase{"fatal", kFault, 2, "the device is poisoned"},
                                           DeathCase{"assert", kFault, 2,
                                                     "device assert failed: k.cu:3: void k(int): "
                                                     "block: [2,0,0], thread: [3,0,0] Assertion "
                                                     "`n > 0` failed."},
                                           DeathCase{"fatal elsewhere", v1::ERROR_REASON_INTERNAL,
                                                     0, "the driver is gone"},
                                           DeathCase{"exit 3", kLost, 0, "code 3"},
                                           DeathCase{"exit 0", kLost, 0, "code 0"},
                                           DeathCase{"signal 11", kFault, 2,
                                                     "illegal memory access"},
                                           DeathCase{"signal 8", kFault, 2, "division by zero"},
                                           DeathCase{"signal 9", kLost, 0, "killed"}));

TEST_F(WorkerProcessTest, CancelReplyPrecedesResults) {
  StartAdopted();
  ASSERT_TRUE(Submit({"a", "wait", "wait"}).ok());
  std::vector<uint64_t> unknown = {3, 4}, two = {2, 3};
  EXPECT_TRUE(absl::IsInvalidArgument(worker_->Cancel(unknown)));
  EXPECT_TRUE(absl::IsInvalidArgument(worker_->Cancel({})));
  ASSERT_TRUE(worker_->Cancel(two).ok());
  auto results = recorder_.WaitForResults(3);
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_EQ(results[1].status().code(), static_cast<int>(absl::StatusCode::kCancelled));
  auto cancelled = recorder_.WaitForCancelled(1);
  ASSERT_THAT(cancelled, SizeIs(1));
  EXPECT_EQ(cancelled[0].sequence, 2u);
  EXPECT_TRUE(cancelled[0].taken);
  EXPECT_EQ(cancelled[0].results_before, 1u);
  EXPECT_EQ(worker_->progress().completed_sequence, 1u);
}

class LieTest : public WorkerProcessTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LieTest, LieKillsTheWorker) {
  StartAdopted();
  ASSERT_TRUE(Submit({"a", std::string("lie ") + GetParam()}).ok());
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(ReasonOf(death->cause), v1::ERROR_REASON_WORKER_LOST);
  EXPECT_THAT(Text(death->cause), HasSubstr("makes no sense"));
}

INSTANTIATE_TEST_SUITE_P(Lies, LieTest,
                         ::testing::Values("future", "skip", "zero", "nan", "repeat", "garbage",
                                           "oversize", "copy", "cancelled", "module", "arena",
                                           "pong", "started", "descriptor", "half", "nothing",
                                           "no copies", "broken text", "many descriptors",
                                           "descriptor flood", "two arenas", "last result",
                                           "printed for another", "printed nothing",
                                           "printed too much"));

TEST_F(WorkerProcessTest, PrintedTextPrecedesTaskResult) {
  StartAdopted();
  ASSERT_TRUE(Submit({"a", "print"}).ok());
  ASSERT_THAT(recorder_.WaitForResults(2), SizeIs(2));
  const auto printed = recorder_.printed();
  ASSERT_THAT(printed, SizeIs(1));
  EXPECT_EQ(printed[0].sequence, 2u);
  EXPECT_EQ(printed[0].text, "a line\n");
  EXPECT_EQ(printed[0].dropped_lines, 3u);
  EXPECT_LE(printed[0].results_before, 1u);
}

TEST_F(WorkerProcessTest, LiesLeakNoDescriptor) {
  StartAdopted();
  const int before = NumDescriptors();
  ASSERT_TRUE(Submit({"lie descriptor flood"}).ok());
  ASSERT_TRUE(recorder_.WaitForDeath().has_value());
  EXPECT_LE(NumDescriptors(), before);
}

// The worker reports its end repeatedly and does not exit.
TEST_F(WorkerProcessTest, EndlessFatalMessagesAreBounded) {
  StartAdopted();
  ASSERT_TRUE(Submit({"lie endless fatal"}).ok());
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_LT(Text(death->cause).size(), 40u << 10);
}

TEST_F(WorkerProcessTest, LongOrInvalidStatusTextIsSanitized) {
  StartAdopted();
  ASSERT_TRUE(Submit({"long text"}).ok());
  auto results = recorder_.WaitForResults(1);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_LE(results[0].status().message().size(), wire::kMaxStatusText);
}

TEST_F(WorkerProcessTest, SilentWorkerIsKilled) {
  WorkerOptions options = Options();
  options.silence_timeout = absl::Seconds(2);
  auto worker = WorkerProcess::Start(options, &spawner_, &list_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  worker_ = *std::move(worker);
  worker_->Adopt(recorder_.callbacks());
  // An idle worker is not silent: its loop runs.
  absl::SleepFor(absl::Seconds(3));
  ASSERT_TRUE(worker_->alive());
  ASSERT_TRUE(Submit({"stuck"}).ok());
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(ReasonOf(death->cause), v1::ERROR_REASON_WORKER_LOST);
  EXPECT_THAT(Text(death->cause), HasSubstr("no sign of life"));
}

TEST_F(WorkerProcessTest, WorkerOutputIsBoundedAndPrintable) {
  if (KeepsStandardError({})) GTEST_SKIP() << "a build with sanitizers";
  auto lines = std::make_shared<std::vector<std::string>>();
  WorkerOptions options = Options();
  options.log = [lines](const std::string& line) { lines->push_back(line); };
  auto worker = WorkerProcess::Start(options, &spawner_, &list_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  worker_ = *std::move(worker);
  worker_->Adopt(recorder_.callbacks());
  ASSERT_TRUE(Submit({"chatter", "exit 0"}).ok());
  ASSERT_TRUE(recorder_.WaitForDeath().has_value());
  // The reader thread has finished the log before it reports the death.
  ASSERT_THAT(*lines, ::testing::Not(::testing::IsEmpty()));
  EXPECT_EQ(lines->front(), "line 0 ?[31m?");
  EXPECT_LT(lines->size(), 2000u);
}

TEST_F(WorkerProcessTest, InheritsOnlyItsSocket) {
  if (KeepsStandardError({})) GTEST_SKIP() << "a build with sanitizers";
  StartAdopted();
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", worker_->pid(), "/fd"))) {
    std::error_code error;
    names.push_back(entry.path().filename().string() + " " +
                    std::filesystem::read_symlink(entry.path(), error).string());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("0 /dev/null", "1 /dev/null",
                                                     ::testing::StartsWith("2 pipe:"),
                                                     ::testing::StartsWith("3 socket:")));
}

TEST_F(WorkerProcessTest, KillGivesItsCause) {
  StartAdopted();
  ASSERT_TRUE(Submit({"hang"}).ok());
  worker_->Kill(MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, "late"));
  worker_->Kill(absl::InternalError("a second cause"));
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(Text(death->cause), "late");
}

// The end of one operation may stop its worker's other work. That work does not fail with the
// operation's error: callers with a copy, a module or memory in flight try again.
TEST_F(WorkerProcessTest, KillForOneOperationIsWorkerLostForOthers) {
  for (const absl::Status& cause :
       {MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, "late"),
        MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED, "not wanted"),
        absl::CancelledError("not needed")}) {
    SCOPED_TRACE(cause);
    JournalWriter recorder;
    absl::Status load, arena;
    StartAdopted();
    worker_->Copy(true, 1, 0, 0, 13, recorder.copy_done());  // never ends by itself
    CompiledModule module;
    module.id = 1;
    module.size = 4;
    module.object = *CreateSealedCopy("object", "deaf");  // the worker reads no command after it
    absl::Notification notified;
    ASSERT_TRUE(worker_
                    ->LoadModule(module,
                                 [&](absl::StatusOr<wire::ModuleLoaded> loaded) {
                                   load = loaded.status();
                                   notified.Notify();
                                 })
                    .ok());
    std::thread other([&] { arena = worker_->CreateArena(4, 8192).status(); });
    worker_->Kill(cause);
    const absl::Status copy = recorder.WaitForCopies(1).at(0);
    notified.WaitForNotification();
    other.join();
    for (const absl::Status& status : {copy, load, arena})
      EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_WORKER_LOST) << status;
  }
}

TEST_F(WorkerProcessTest, DeathReportsProgress) {
  StartAdopted();
  ASSERT_TRUE(Submit({"a", "b", "hang"}).ok());
  recorder_.WaitForResults(2);
  // "hang" starts after the results left: a round trip of copies after it proves that.
  worker_->Copy(true, 9, 0, 0, 5, recorder_.copy_done());
  recorder_.WaitForCopies(1);
  kill(worker_->pid(), SIGKILL);
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(death->completed_sequence, 2u);
  EXPECT_EQ(death->started_sequence, 3u);
}

// A sender may hold locks that other threads need. A slow worker blocks no sender, and receives
// everything once it reads, descriptors too.
TEST_F(WorkerProcessTest, BlockedWorkerDoesNotBlockSenders) {
  constexpr int kPackets = 30, kTasks = 100;  // many times the socket's capacity
  StartAdopted();
  ASSERT_TRUE(Submit({"a"}).ok());
  recorder_.WaitForResults(1);
  ASSERT_EQ(kill(worker_->pid(), SIGSTOP), 0);
  for (int i = 0; i < kPackets; ++i) {
    ASSERT_TRUE(Submit(std::vector<std::string>(kTasks, std::string(900, 'x'))).ok());
  }
  auto arena = CreateMemoryFile("arena", 4096);
  ASSERT_TRUE(worker_->MapArena(1, 4096, arena->get()).ok());
  arena->Reset();
  StagingPool::Slot slot = worker_->staging().TryAcquire();
  worker_->Copy(true, 1, 100, slot.offset, 5, recorder_.copy_done());
  EXPECT_TRUE(worker_->alive());
  ASSERT_EQ(kill(worker_->pid(), SIGCONT), 0);
  auto results = recorder_.WaitForResults(1 + kPackets * kTasks);
  ASSERT_THAT(results, SizeIs(1 + kPackets * kTasks));
  auto copies = recorder_.WaitForCopies(1);
  ASSERT_THAT(copies, SizeIs(1));
  EXPECT_TRUE(copies[0].ok()) << copies[0];
}

TEST_F(WorkerProcessTest, DeferredTasksAreSentWithTheNextCommand) {
  StartAdopted();
  auto later = [&](const std::string& label) {
    wire::Task task;
    task.set_sequence(++sequence_);
    task.set_label(label);
    wire::TaskPacket packet;
    packet.Add(task);
    return worker_->SubmitLater(packet);
  };
  ASSERT_TRUE(later("a").ok());
  ASSERT_TRUE(later("b").ok());
  worker_->Flush();
  EXPECT_THAT(recorder_.WaitForResults(2), SizeIs(2));
  ASSERT_TRUE(later("c").ok());
  ASSERT_TRUE(Submit({"d"}).ok());
  auto results = recorder_.WaitForResults(4);
  ASSERT_THAT(results, SizeIs(4));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(results[i].sequence(), i + 1u);
}

TEST_F(WorkerProcessTest, ShutdownFinishesWhatWasSubmitted) {
  StartAdopted();
  ASSERT_TRUE(Submit({"a", "b"}).ok());
  worker_->Shutdown();
  auto death = recorder_.WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_TRUE(death->cause.ok()) << death->cause;
  EXPECT_THAT(recorder_.WaitForResults(2), SizeIs(2));
}

TEST_F(WorkerProcessTest, DestructionKillsTheWorker) {
  StartAdopted();
  pid_t pid = worker_->pid();
  worker_.reset();
  ASSERT_TRUE(recorder_.WaitForDeath().has_value());
  EXPECT_EQ(kill(pid, 0), -1);
}

// --- starts that fail ---

TEST_F(WorkerProcessTest, FailedStartReportsTheCause) {
  struct {
    const char* order;
    const char* text;
  } const cases[] = {{"fail", "no memory for a context"},
                     {"die", "code 9"},
                     {"lie", "makes no sense"},
                     {"hang", "did not get ready"}};
  for (const auto& c : cases) {
    UseEnvironment(std::string("STRIDE_WORKER_FAKE_START=") + c.order);
    WorkerOptions options = Options();
    if (c.order == std::string("hang")) options.start_timeout = absl::Milliseconds(300);
    WorkerList list;
    auto worker = WorkerProcess::Start(options, other_spawner_.get(), &list);
    ASSERT_FALSE(worker.ok()) << c.order;
    EXPECT_THAT(Text(worker.status()), HasSubstr(c.text));
    list.EndAll();
  }
}

TEST_F(WorkerProcessTest, MissingExecutableIsAnError) {
  WorkerOptions options = Options();
  options.executable = "/nonexistent/stride-worker-none";
  EXPECT_FALSE(WorkerProcess::Start(options, &spawner_, &list_).ok());
}

}  // namespace
}  // namespace stride::broker
