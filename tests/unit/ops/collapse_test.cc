#include "server/ops/collapse.h"

#include "gtest/gtest.h"

namespace stride::ops {
namespace {

using Extents = std::vector<int64_t>;

TEST(Collapse, ContiguousArraysAreOneAxis) {
  Loop loop = Collapse({{2, 3, 4}, {{48, 16, 4}, {96, 32, 8}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, Extents{24});
  EXPECT_EQ(loop.strides[1], Extents{8});
  EXPECT_EQ(AccessOf(loop, 0, 4), wire::Layout::ACCESS_CONTIGUOUS);
}

TEST(Collapse, TransposedTogetherIsOneAxis) {
  Loop loop = Collapse({{3, 2}, {{4, 12}, {4, 12}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, Extents{6});
  EXPECT_EQ(Collapse({{3, 2}, {{4, 12}, {4, 12}}}, AxisOrder::kKeep).extents, (Extents{3, 2}));
}

TEST(Collapse, TransposedAgainstEachOtherFollowsTheOutput) {
  Loop loop = Collapse({{3, 2}, {{4, 12}, {8, 4}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, (Extents{3, 2}));
  EXPECT_EQ(AccessOf(loop, 0, 4), wire::Layout::ACCESS_STRIDED);
  EXPECT_EQ(AccessOf(loop, 1, 4), wire::Layout::ACCESS_CONTIGUOUS);
}

TEST(Collapse, BroadcastKeepsRepeatedAxes) {
  // (4, 5) + (5,): the row repeats.
  Loop loop = Collapse({{4, 5}, {{40, 8}, {0, 8}, {40, 8}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, (Extents{4, 5}));
  EXPECT_EQ(AccessOf(loop, 1, 8), wire::Layout::ACCESS_STRIDED);
  // A scalar array repeats everywhere.
  loop = Collapse({{4, 5}, {{0, 0}, {40, 8}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, Extents{20});
  EXPECT_EQ(AccessOf(loop, 0, 8), wire::Layout::ACCESS_BROADCAST);
}

TEST(Collapse, ReversedAxesMergeToo) {
  Loop loop = Collapse({{4, 5}, {{-40, -8}, {40, 8}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, Extents{20});
  EXPECT_EQ(loop.strides[0], Extents{-8});
  EXPECT_EQ(AccessOf(loop, 0, 8), wire::Layout::ACCESS_STRIDED);
}

TEST(Collapse, SingleElementAndEmptyArrays) {
  Loop loop = Collapse({{1, 1}, {{99, 7}, {8, 8}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, Extents{1});
  EXPECT_EQ(AccessOf(loop, 0, 4), wire::Layout::ACCESS_CONTIGUOUS);
  loop = Collapse({{3, 0, 2}, {{0, 8, 8}}}, AxisOrder::kLocality);
  EXPECT_EQ(loop.extents, Extents{0});
  EXPECT_EQ(Collapse({{1}, {{8}}}, AxisOrder::kLocality, false).extents, Extents{});
  EXPECT_EQ(Collapse({{}, {{}}}, AxisOrder::kLocality).extents, Extents{1});
}

TEST(Collapse, LargeArraysNeedWideIndices) {
  EXPECT_TRUE(Fits32Bits({{1 << 20}, {{8}}}));
  EXPECT_FALSE(Fits32Bits({{1 << 28}, {{8}}}));
  EXPECT_FALSE(Fits32Bits({{2}, {{-(int64_t{1} << 33)}}}));
}

}  // namespace
}  // namespace stride::ops
