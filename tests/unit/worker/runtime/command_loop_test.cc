// The loop with a device whose tasks begin and end on the test's command.
#include "server/worker/runtime/command_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "server/worker/runtime/task_gate.h"

namespace stride::worker {
namespace {

using Outcome = wire::Channel::Outcome;

class QueueingDevice : public Device {
 public:
  absl::Status Start(const Environment& environment) override {
    environment_ = environment;
    return absl::OkStatus();
  }
  absl::StatusOr<UniqueFd> CreateArena(uint64_t, uint64_t) override {
    return absl::UnimplementedError("none");
  }
  absl::Status MapArena(uint64_t, uint64_t, UniqueFd) override { return absl::OkStatus(); }
  absl::Status MapHostArena(uint64_t, uint64_t, UniqueFd) override { return absl::OkStatus(); }
  absl::Status UnmapArena(uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<wire::ModuleLoaded> LoadModule(uint64_t, UniqueFd,
                                                const wire::LoadModule&) override {
    return wire::ModuleLoaded();
  }
  absl::Status UnloadModule(uint64_t) override { return absl::OkStatus(); }
  absl::Status LoadGraph(uint64_t, wire::Graph) override { return absl::OkStatus(); }
  absl::Status UnloadGraph(uint64_t) override { return absl::OkStatus(); }
  void Enqueue(const wire::Task& task) override {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(task.sequence());
  }
  void Cancel(absl::Span<const uint64_t> sequences) override {
    gate_.Cancel(sequences, environment_.completions);
  }
  void Copy(const wire::Copy&) override {}
  void Drain() override {}

  // The test's side, which stands for the thread that runs tasks.
  bool BeginNext() {
    absl::MutexLock lock(&mutex_);
    auto queued = [this] { return !queue_.empty(); };
    mutex_.Await(absl::Condition(&queued));
    running_ = queue_.front();
    queue_.pop_front();
    return gate_.Begin(running_);
  }
  void End(const absl::Status& status) {
    environment_.completions->TaskDone(running_, status, 0, /*more=*/false);
  }

 private:
  Environment environment_;
  TaskGate gate_;
  absl::Mutex mutex_;
  std::deque<uint64_t> queue_;
  uint64_t running_ = 0;
};

class CommandLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    auto sockets = wire::CreateSocketPair();
    daemon_ = std::make_unique<wire::Channel>(std::move(sockets->first));
    worker_ = std::make_unique<wire::Channel>(std::move(sockets->second));
    auto device = std::make_unique<QueueingDevice>();
    device_ = device.get();
    loop_ = std::make_unique<CommandLoop>(worker_.get(), std::move(device));
    thread_ = std::thread([this] { code_ = loop_->Run(); });
    auto staging = CreateMemoryFile("staging", 4096);
    auto page = CreateMemoryFile("page", wire::kStatusPageBytes);
    wire::Command command;
    command.mutable_start()->set_protocol_version(2);
    command.mutable_start()->set_staging_bytes(4096);
    ASSERT_TRUE(daemon_->Send(command, {staging->get(), page->get()}).ok());
    ASSERT_EQ(Next().started().status().code(), 0);
  }
  void TearDown() override {
    wire::Command command;
    command.mutable_shutdown();
    EXPECT_TRUE(daemon_->Send(command).ok());
    thread_.join();
    EXPECT_EQ(code_, 0);
  }
  wire::Event Next() {
    wire::Event event;
    std::vector<UniqueFd> descriptors;
    EXPECT_EQ(daemon_->Receive(&event, &descriptors, absl::Seconds(100)).value(),
              Outcome::kMessage);
    return event;
  }
  void Submit(uint64_t first, uint64_t last) {
    wire::Command command;
    for (uint64_t i = first; i <= last; ++i) command.mutable_submit()->add_tasks()->set_sequence(i);
    ASSERT_TRUE(daemon_->Send(command).ok());
  }
  void Cancel(std::vector<uint64_t> sequences) {
    wire::Command command;
    command.mutable_cancel()->mutable_sequences()->Add(sequences.begin(), sequences.end());
    ASSERT_TRUE(daemon_->Send(command).ok());
  }
  void ExpectAnswer(uint64_t sequence, bool taken) {
    wire::Event event = Next();
    ASSERT_TRUE(event.has_tasks_cancelled()) << event.ShortDebugString();
    EXPECT_EQ(event.tasks_cancelled().sequence(), sequence);
    EXPECT_EQ(event.tasks_cancelled().taken(), taken);
  }
  void ExpectResult(uint64_t sequence, absl::StatusCode code) {
    wire::Event event = Next();
    ASSERT_EQ(event.tasks_done().results_size(), 1) << event.ShortDebugString();
    EXPECT_EQ(event.tasks_done().results(0).sequence(), sequence);
    EXPECT_EQ(event.tasks_done().results(0).status().code(), static_cast<int>(code));
  }

  std::unique_ptr<wire::Channel> daemon_, worker_;
  QueueingDevice* device_ = nullptr;
  std::unique_ptr<CommandLoop> loop_;
  std::thread thread_;
  int code_ = -1;
};

TEST_F(CommandLoopTest, CancelOvertakesQueuedTasks) {
  Submit(1, 4);
  EXPECT_TRUE(device_->BeginNext());
  Cancel({2, 4});
  ExpectAnswer(2, true);  // while the first still runs
  device_->End(absl::OkStatus());
  ExpectResult(1, absl::StatusCode::kOk);
  EXPECT_FALSE(device_->BeginNext());
  device_->End(TaskGate::CancelledResult());
  ExpectResult(2, absl::StatusCode::kCancelled);
  EXPECT_TRUE(device_->BeginNext()) << "another task";
  device_->End(absl::OkStatus());
  ExpectResult(3, absl::StatusCode::kOk);
  EXPECT_FALSE(device_->BeginNext());
  device_->End(TaskGate::CancelledResult());
  ExpectResult(4, absl::StatusCode::kCancelled);
}

TEST_F(CommandLoopTest, NothingIsRecalledAfterAStartedTask) {
  Submit(1, 2);
  EXPECT_TRUE(device_->BeginNext());
  Cancel({1, 2});
  ExpectAnswer(1, false);
  device_->End(absl::OkStatus());
  ExpectResult(1, absl::StatusCode::kOk);
  EXPECT_TRUE(device_->BeginNext());
  device_->End(absl::OkStatus());
  ExpectResult(2, absl::StatusCode::kOk);
  Cancel({2});
  ExpectAnswer(2, false);
}

}  // namespace
}  // namespace stride::worker
