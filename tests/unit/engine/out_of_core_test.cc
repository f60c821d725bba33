// Operations that are computed in pieces: results, cancellation, errors and waits.
#include "server/engine/memory/out_of_core.h"

#include "gmock/gmock.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ends each piece at once, or when the test says so: every byte is that of the first input plus 1.
// Global transactions guard it.
struct FakePieces : public TaskIntake, public EarlyEnds {
  absl::Status Enqueue(TenantTransaction&, const std::shared_ptr<Task>& piece,
                       const std::shared_ptr<Task>&) override {
    pieces.push_back(piece);
    most_at_once = std::max(most_at_once, ++num_in_flight);
    if (!hold) End(piece);
    return absl::OkStatus();
  }
  void Cancel(TenantTransaction&, const std::shared_ptr<Task>& piece) override {
    End(piece, absl::CancelledError("cancelled"));
  }
  void DeadlinePassed(TenantTransaction&, const std::shared_ptr<Task>&) override {}
  void End(const std::shared_ptr<Task>& piece, absl::Status status = absl::OkStatus()) {
    if (piece->finished.HasBeenNotified()) return;
    std::string bytes = *piece->uses.front().buffer->inline_bytes;
    for (char& byte : bytes) ++byte;
    piece->uses.back().buffer->inline_bytes = std::make_shared<const std::string>(std::move(bytes));
    piece->result = std::move(status);
    piece->finished.Notify();
    --num_in_flight;
  }

  bool hold = false;
  int num_in_flight = 0, most_at_once = 0;
  std::vector<std::shared_ptr<Task>> pieces;
};

class OutOfCoreTest : public MemoryPartsTest {
 protected:
  static constexpr int64_t kLarge = 5 * kMiB;
  void MakeExecutor(Limits limits = {}) {
    Make({HostDevice(0, kMiB)}, limits);
    executor_ = std::make_unique<OutOfCoreExecutor>(core_.get(), queues_.get(), memory_.get(),
                                                    workers_.get(), &tasks_, &pieces_, &pieces_);
  }
  // A prepared operation on an array of 5 MiB, on a device of 1 MiB.
  std::shared_ptr<Task> Large() {
    auto task =
        TaskOn(QueueOf(0),
               {Use{.buffer = Filled(QueueOf(core_->memory_place()), kLarge, 'a'), .read = true},
                Use{.buffer = EmptyBuffer(kLarge), .write = true, .fresh = true}});
    task->planned = MakePlanned(ops::testing::Good(ops::testing::UfuncOf("negative", 1),
                                                   {ops::testing::Array(DType::kUInt8, {kLarge})}));
    return task;
  }
  void Begin(const std::shared_ptr<Task>& task) {
    GlobalTransaction transaction(*core_);
    executor_->Begin(transaction, task, absl::ResourceExhaustedError("too large"));
  }
  template <typename Predicate>
  bool Await(Predicate holds) {
    return Eventually([&] {
      GlobalTransaction transaction(*core_);
      return holds();
    });
  }
  bool AwaitEnd(size_t count = 1) {
    return Await([&] { return tasks_.ended.size() == count; });
  }

  FakePieces pieces_;
  std::unique_ptr<OutOfCoreExecutor> executor_;
};

TEST_F(OutOfCoreTest, ResultIsComputedInPieces) {
  MakeExecutor();
  auto task = Large();
  Begin(task);
  ASSERT_TRUE(AwaitEnd());
  EXPECT_TRUE(tasks_.ended[0].second.ok()) << tasks_.ended[0].second;
  // A piece has an eighth of the device for its input and output.
  EXPECT_EQ(pieces_.pieces.size(), size_t{2 * kLarge / (kMiB / 8)});
  const store::Buffer& output = *task->uses.back().buffer;
  ASSERT_THAT(PlacesOf(output), ElementsAre(core_->memory_place()));
  const store::Allocation& block = output.replicas.at(core_->memory_place());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(block.data()), kLarge),
            std::string(kLarge, 'b'));
  EXPECT_EQ(output.pin_count, 0);
  EXPECT_EQ(output.num_writes, 1u);
  EXPECT_EQ(task->stream, nullptr);
}

TEST_F(OutOfCoreTest, CancelEndsThePiecesInFlight) {
  MakeExecutor();
  pieces_.hold = true;
  auto task = Large();
  Begin(task);
  ASSERT_TRUE(Await([&] { return pieces_.num_in_flight == 2; }));
  {
    GlobalTransaction transaction(*core_);
    pieces_.End(pieces_.pieces[0]);
  }
  ASSERT_TRUE(Await([&] { return pieces_.pieces.size() == 3; }));
  {
    TenantTransaction transaction(*core_, task->tenant);
    task->cancel.stop = absl::CancelledError("by the client");
    task->stream->Stop(transaction);
  }
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(tasks_.ended[0].second, absl::CancelledError("by the client"));
  EXPECT_EQ(pieces_.pieces.size(), 3u);
  EXPECT_EQ(pieces_.most_at_once, 2);
  EXPECT_EQ(pieces_.num_in_flight, 0);
  EXPECT_EQ(task->uses.back().buffer->pin_count, 0);
}

TEST_F(OutOfCoreTest, ErrorOfOnePieceIsTheErrorOfAll) {
  MakeExecutor();
  pieces_.hold = true;
  Begin(Large());
  ASSERT_TRUE(Await([&] { return pieces_.num_in_flight == 2; }));
  {
    GlobalTransaction transaction(*core_);
    pieces_.End(pieces_.pieces[0], absl::InternalError("it broke"));
  }
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(tasks_.ended[0].second, absl::InternalError("it broke"));
  EXPECT_EQ(pieces_.pieces[1]->result.code(), absl::StatusCode::kCancelled);
}

TEST_F(OutOfCoreTest, QueueHasOneOperationAtATime) {
  MakeExecutor();
  pieces_.hold = true;
  auto first = Large(), second = Large();
  Begin(first);
  Begin(second);
  Begin(second);  // prepared again: it waits once
  ASSERT_TRUE(Await([&] { return pieces_.num_in_flight == 2; }));
  EXPECT_EQ(second->state, TaskState::kPreparing);
  {
    GlobalTransaction transaction(*core_);
    pieces_.hold = false;
    for (const auto& piece : std::vector(pieces_.pieces)) pieces_.End(piece);
  }
  ASSERT_TRUE(AwaitEnd());
  EXPECT_THAT(tasks_.retried, ElementsAre(second));
  Begin(second);
  EXPECT_TRUE(AwaitEnd(2));
}

TEST_F(OutOfCoreTest, EarlierAccessPostponesIt) {
  MakeExecutor();
  auto task = Large();
  task->order.pending.push_back(TaskOn(QueueOf(0), {}));
  Begin(task);
  EXPECT_THAT(tasks_.postponed, ElementsAre(task.get()));
  EXPECT_FALSE(QueueOf(0).streaming);
}

TEST_F(OutOfCoreTest, OperationThatCannotBeCutFails) {
  MakeExecutor();
  auto task = Large();
  task->planned = NoPlan();
  Begin(task);
  ASSERT_EQ(tasks_.failed.size(), 1u);
  EXPECT_EQ(tasks_.failed[0].second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(pieces_.pieces, IsEmpty());
}

TEST_F(OutOfCoreTest, NoRoomForTheResultIsAnError) {
  MakeExecutor({.memory = 6 * kMiB});
  Begin(Large());
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(ReasonOf(tasks_.ended[0].second), v1::ERROR_REASON_DEVICE_MEMORY);
  EXPECT_THAT(pieces_.pieces, IsEmpty());
}

TEST_F(OutOfCoreTest, EndOfTheEngineReportsNothing) {
  MakeExecutor();
  pieces_.hold = true;
  auto task = Large();
  Begin(task);
  ASSERT_TRUE(Await([&] { return pieces_.num_in_flight == 2; }));
  {
    GlobalTransaction transaction(*core_);
    core_->ending = true;
  }
  EXPECT_TRUE(Await([&] { return task->stream == nullptr; }));
  EXPECT_THAT(tasks_.ended, IsEmpty());
}

}  // namespace
}  // namespace stride::engine
