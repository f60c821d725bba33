#include "client/cpp/src/watch.h"

#include <thread>

#include "gtest/gtest.h"

namespace stride::internal {
namespace {

TEST(WatchTest, SeesAResponseWithManyProcessors) {
  int asked = 0;
  const bool seen = Watch([&] { return ++asked == 3; });
  const bool plenty = std::thread::hardware_concurrency() >= 8;
  EXPECT_EQ(seen, plenty);
  EXPECT_EQ(asked, plenty ? 3 : 0);
}

TEST(WatchTest, StopsSpinningWithoutResponse) {
  EXPECT_FALSE(Watch([] { return false; }));
}

}  // namespace
}  // namespace stride::internal
