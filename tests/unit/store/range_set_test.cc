#include "server/store/range_set.h"

#include "gtest/gtest.h"

namespace stride::store {
namespace {

TEST(RangeSet, MergesTouchingAndOverlappingRanges) {
  RangeSet set;
  set.Add(10, 20);
  set.Add(30, 40);
  set.Add(20, 25);
  EXPECT_EQ(set.ranges(), (std::map<int64_t, int64_t>{{10, 25}, {30, 40}}));
  set.Add(5, 35);
  EXPECT_EQ(set.ranges(), (std::map<int64_t, int64_t>{{5, 40}}));
}

TEST(RangeSet, CoversOnlyTheWhole) {
  RangeSet set;
  EXPECT_TRUE(set.Covers(0));
  set.Add(0, 9);
  EXPECT_FALSE(set.Covers(10));
  set.Add(9, 10);
  EXPECT_TRUE(set.Covers(10));
  set.Add(3, 3);
  EXPECT_EQ(set.ranges().size(), 1u);
}

}  // namespace
}  // namespace stride::store
