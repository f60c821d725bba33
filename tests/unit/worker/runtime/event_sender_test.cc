#include "server/worker/runtime/event_sender.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "server/worker/runtime/print_budget.h"

namespace stride::worker {
namespace {

using Outcome = wire::Channel::Outcome;

class EventSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto sockets = wire::CreateSocketPair();
    daemon_ = std::make_unique<wire::Channel>(std::move(sockets->first));
    worker_ = std::make_unique<wire::Channel>(std::move(sockets->second));
    sender_ = std::make_unique<EventSender>(worker_.get());
  }
  wire::Event Next() {
    wire::Event event;
    std::vector<UniqueFd> descriptors;
    EXPECT_EQ(daemon_->Receive(&event, &descriptors, absl::Seconds(100)).value(),
              Outcome::kMessage);
    return event;
  }
  std::unique_ptr<wire::Channel> daemon_, worker_;
  std::unique_ptr<EventSender> sender_;
};

TEST_F(EventSenderTest, SingleReportIsSentAtOnce) {
  sender_->TaskDone(1, absl::OkStatus(), 0.5, /*more=*/false);
  wire::Event event = Next();
  ASSERT_EQ(event.tasks_done().results_size(), 1);
  EXPECT_EQ(event.tasks_done().results(0).sequence(), 1u);
  EXPECT_EQ(event.tasks_done().results(0).run_seconds(), 0.5);
  sender_->CopyDone(7, absl::InternalError("no"));
  event = Next();
  EXPECT_EQ(event.copies_done().ids(0), 7u);
  EXPECT_EQ(event.copies_done().status().message(), "no");
}

TEST_F(EventSenderTest, DeferrableReportIsSentWithTheNext) {
  sender_->TaskDone(1, absl::OkStatus(), 0, /*more=*/true);
  sender_->TaskDone(2, absl::OkStatus(), 0, /*more=*/true);
  wire::Event event;
  std::vector<UniqueFd> descriptors;
  EXPECT_EQ(daemon_->Receive(&event, &descriptors, absl::Milliseconds(20)).value(),
            Outcome::kTimeout);
  sender_->TaskDone(3, absl::OkStatus(), 0, /*more=*/false);
  EXPECT_EQ(Next().tasks_done().results_size(), 3);
}

TEST_F(EventSenderTest, LongTextIsSentInWholeLines) {
  PrintedText printed{"", 5};
  for (int i = 0; i < 3000; ++i) printed.text += std::string(99, 'x') + "\n";
  std::string text;
  std::thread sends([&] { sender_->Printed(4, printed); });
  uint64_t dropped = 0;
  while (text.size() < printed.text.size()) {
    const wire::Event event = Next();
    EXPECT_EQ(event.printed().sequence(), 4u);
    EXPECT_LE(event.printed().text().size(), kMaxPrintedPiece);
    EXPECT_EQ(event.printed().text().back(), '\n');
    EXPECT_EQ(dropped, 0u) << "the last piece has the count";
    dropped = event.printed().dropped_lines();
    text += event.printed().text();
  }
  sends.join();
  EXPECT_EQ(text, printed.text);
  EXPECT_EQ(dropped, 5u);
}

TEST(PrintBudget, FloodIsBoundedPerSecond) {
  PrintBudget budget;
  const SteadyTime start = SteadyTime::SinceBoot(absl::Seconds(10));
  size_t sent = 0;
  uint64_t dropped = 0;
  for (int i = 0; i < 100; ++i) {
    PrintedText printed{std::string(kMaxPrintedBytes - 1, 'x') + "\n", 0};
    budget.Take(&printed, start + absl::Milliseconds(10) * i);
    sent += printed.text.size();
    dropped += printed.dropped_lines;
  }
  EXPECT_LE(sent, PrintBudget::kMostBytes + PrintBudget::kBytesPerSecond);
  EXPECT_GE(sent, PrintBudget::kMostBytes + PrintBudget::kBytesPerSecond - 2 * kMaxPrintedBytes);
  EXPECT_EQ(sent / kMaxPrintedBytes + dropped, 100u);
}

// The socket fills without a reader: waiting reports are sent in few packets, whole and in order.
TEST_F(EventSenderTest, WaitingReportsAreSentTogetherInOrder) {
  constexpr uint64_t kTasks = 20000;
  std::thread tasks([&] {
    for (uint64_t i = 1; i <= kTasks; ++i)
      sender_->TaskDone(i, absl::OkStatus(), 0, /*more=*/false);
  });
  std::thread copies([&] {
    for (uint64_t i = 1; i <= kTasks; ++i) {
      sender_->CopyDone(i, i % 1000 == 0 ? absl::InternalError("bad") : absl::OkStatus());
    }
  });
  uint64_t last_task = 0, last_copy = 0;
  while (last_task < kTasks || last_copy < kTasks) {
    wire::Event event = Next();
    for (const wire::TaskResult& result : event.tasks_done().results()) {
      ASSERT_EQ(result.sequence(), ++last_task);
    }
    for (uint64_t id : event.copies_done().ids()) {
      ASSERT_EQ(id, ++last_copy);
      ASSERT_EQ(event.copies_done().status().code() != 0, id % 1000 == 0) << id;
    }
  }
  tasks.join();
  copies.join();
}

TEST_F(EventSenderTest, LongErrorsFitTheirPackets) {
  std::string text(wire::kMaxPacketBytes, 'x');
  for (int i = 1; i <= 3; ++i) sender_->TaskDone(i, absl::InternalError(text), 0, /*more=*/false);
  for (int i = 1; i <= 3; ++i)
    EXPECT_EQ(Next().tasks_done().results(0).sequence(), static_cast<uint64_t>(i));
}

TEST_F(EventSenderTest, FatalReportsCompletedTasks) {
  EXPECT_EXIT(
      {
        sender_->TaskDone(1, absl::OkStatus(), 0, /*more=*/false);
        sender_->Fatal(2, absl::FailedPreconditionError("poisoned"), /*context_lost=*/false);
      },
      testing::ExitedWithCode(1), "poisoned");
  EXPECT_EQ(Next().tasks_done().results(0).sequence(), 1u);
  EXPECT_EQ(Next().fatal().sequence(), 2u);
}

}  // namespace
}  // namespace stride::worker
