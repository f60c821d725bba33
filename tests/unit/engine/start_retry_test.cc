#include "server/engine/core/start_retry.h"

#include "gtest/gtest.h"

namespace stride::engine {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

TEST(StartRetryTest, GivesUpAfterTriesAndTimeAreExhausted) {
  EXPECT_TRUE(PauseBeforeNextStart(3, absl::Hours(1), kPatience).has_value());
  EXPECT_TRUE(PauseBeforeNextStart(1000, absl::Seconds(9.9), kPatience).has_value());
  EXPECT_FALSE(PauseBeforeNextStart(4, kPatience, kPatience).has_value());
}

TEST(StartRetryTest, PausesGrowToASecond) {
  EXPECT_EQ(PauseBeforeNextStart(1, absl::ZeroDuration(), kPatience), absl::Milliseconds(10));
  EXPECT_EQ(PauseBeforeNextStart(3, absl::ZeroDuration(), kPatience), absl::Milliseconds(40));
  EXPECT_EQ(PauseBeforeNextStart(2000000000, absl::ZeroDuration(), kPatience), absl::Seconds(1));
}

}  // namespace
}  // namespace stride::engine
