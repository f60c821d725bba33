#include "server/base/surroundings.h"

#include <thread>

#include "gtest/gtest.h"

namespace stride {
namespace {

void AwaitNextMoment(SteadyTime before) {
  while (MachineTime() == before) std::this_thread::yield();
}

TEST(OneMomentTest, TimeIsFrozenDuringItsLifetime) {
  SteadyTime inside;
  {
    const OneMoment moment;
    inside = Now();
    AwaitNextMoment(inside);
    EXPECT_EQ(Now(), inside);
    {
      const OneMoment within;
      EXPECT_EQ(Now(), inside);
    }
    EXPECT_EQ(Now(), inside);
  }
  EXPECT_GT(Now(), inside);
}

TEST(OneMomentTest, OtherThreadsAreNotFrozen) {
  const OneMoment moment;
  AwaitNextMoment(Now());
  std::thread([here = Now()] { EXPECT_GT(Now(), here); }).join();
}

}  // namespace
}  // namespace stride
