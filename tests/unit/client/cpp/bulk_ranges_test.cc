#include <gtest/gtest.h>

#include "client/cpp/src/bulk.h"

namespace stride::internal {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(CutRangesTest, SmallRangesStayWhole) {
  EXPECT_EQ(CutRanges(0, 8), (std::vector<Range>{{0, 0}}));
  EXPECT_EQ(CutRanges(1, 8), (std::vector<Range>{{0, 1}}));
  EXPECT_EQ(CutRanges(15 * kMiB, 8), (std::vector<Range>{{0, 15 * kMiB}}));
}

TEST(CutRangesTest, LargeRangesAreCoveredOnce) {
  for (int64_t size : {16 * kMiB, 16 * kMiB + 1, 100 * kMiB - 3, int64_t{5} << 30}) {
    for (int parts : {1, 2, 8}) {
      const auto ranges = CutRanges(size, parts);
      EXPECT_LE(ranges.size(), static_cast<size_t>(parts));
      int64_t at = 0;
      for (const auto& range : ranges) {
        EXPECT_EQ(range.begin, at);
        EXPECT_EQ(range.begin % kMiB, 0);
        EXPECT_GT(range.end, range.begin);
        at = range.end;
      }
      EXPECT_EQ(at, size);
    }
  }
  EXPECT_EQ(CutRanges(64 * kMiB, 4).size(), 4u);
}

}  // namespace
}  // namespace stride::internal
