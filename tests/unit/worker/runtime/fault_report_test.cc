#include "server/worker/runtime/fault_report.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "server/wire/channel.h"
#include "server/wire/worker.pb.h"

namespace stride::worker {
namespace {

using Outcome = wire::Channel::Outcome;

// The event as the daemon parses it: the message is written without protobuf.
wire::Event Report(uint64_t sequence, absl::StatusCode code, const std::string& text) {
  auto sockets = wire::CreateSocketPair();
  SetFaultSocket(sockets->second.get());
  EXPECT_EXIT(ReportFaultAndExit(sequence, static_cast<int>(code), text.data(), text.size()),
              testing::ExitedWithCode(1), "");
  wire::Channel channel(std::move(sockets->first));
  wire::Event event;
  std::vector<UniqueFd> descriptors;
  EXPECT_EQ(channel.Receive(&event, &descriptors, absl::Seconds(100)).value(), Outcome::kMessage);
  return event;
}

TEST(FaultReportTest, ReportIsAFatalEvent) {
  for (uint64_t sequence : {uint64_t{1}, uint64_t{127}, uint64_t{128}, ~uint64_t{0}}) {
    wire::Event event = Report(sequence, absl::StatusCode::kFailedPrecondition, "it broke");
    ASSERT_TRUE(event.has_fatal());
    EXPECT_EQ(event.fatal().sequence(), sequence);
    EXPECT_EQ(event.fatal().status().code(), 9);
    EXPECT_EQ(event.fatal().status().message(), "it broke");
  }
}

TEST(FaultReportTest, TextIsTruncatedAndAscii) {
  EXPECT_EQ(Report(1, absl::StatusCode::kInternal, "caf\xc3\xa9 \xff").fatal().status().message(),
            "caf?? ?");
  EXPECT_EQ(Report(1, absl::StatusCode::kInternal, std::string(5000, 'x'))
                .fatal()
                .status()
                .message()
                .size(),
            1000u);
}

TEST(SignalSafeTextTest, WritesWordsAndNumbers) {
  SignalSafeText text;
  text << "at " << uint64_t{0} << ", " << ~uint64_t{0};
  EXPECT_EQ(std::string(text.data(), text.size()), "at 0, 18446744073709551615");
  for (int i = 0; i < 2000; ++i) text << "x";
  EXPECT_EQ(text.size(), 1000u);
}

}  // namespace
}  // namespace stride::worker
