#include "server/base/environment.h"

#include <thread>

#include "gtest/gtest.h"

namespace stride {
namespace {

void AwaitNextMoment(SteadyTime before) {
  while (MachineTime() == before) std::this_thread::yield();
}

TEST(FrozenClockTest, TimeIsFrozenDuringItsLifetime) {
  SteadyTime inside;
  {
    const FrozenClock moment;
    inside = Now();
    AwaitNextMoment(inside);
    EXPECT_EQ(Now(), inside);
    {
      const FrozenClock within;
      EXPECT_EQ(Now(), inside);
    }
    EXPECT_EQ(Now(), inside);
  }
  EXPECT_GT(Now(), inside);
}

TEST(FrozenClockTest, OtherThreadsAreNotFrozen) {
  const FrozenClock moment;
  AwaitNextMoment(Now());
  std::thread([here = Now()] { EXPECT_GT(Now(), here); }).join();
}

}  // namespace
}  // namespace stride
