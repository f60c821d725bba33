#include "server/identity/failure_limiter.h"

#include <string>

#include "gtest/gtest.h"
#include "server/base/steady_time.h"

namespace stride::identity {
namespace {

TEST(FailureLimiterTest, AllowsABurstThenOnePerSecond) {
  FailureLimiter limiter;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1000));
  for (int i = 0; i < FailureLimiter::kFree; ++i) EXPECT_TRUE(limiter.Take("ipv4:1.2.3.4", now));
  EXPECT_FALSE(limiter.Take("ipv4:1.2.3.4", now));
  EXPECT_TRUE(limiter.Take("ipv4:1.2.3.5", now));
  now += absl::Seconds(1);
  EXPECT_TRUE(limiter.Take("ipv4:1.2.3.4", now));
  EXPECT_FALSE(limiter.Take("ipv4:1.2.3.4", now));
  // Unused allowance does not accumulate without bound.
  now += absl::Hours(1);
  int taken = 0;
  while (limiter.Take("ipv4:1.2.3.4", now)) ++taken;
  EXPECT_EQ(taken, static_cast<int>(FailureLimiter::kFree));
}

TEST(FailureLimiterTest, ManyAddressesCostBoundedMemory) {
  FailureLimiter limiter;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1000));
  for (size_t i = 0; i < 10 * FailureLimiter::kMaxAddresses; ++i)
    EXPECT_TRUE(limiter.Take(std::to_string(i), now));
}

}  // namespace
}  // namespace stride::identity
