#include "server/engine/memory/eviction_plan.h"

#include <memory>

#include "gtest/gtest.h"

namespace stride::engine {
namespace {

using store::Allocation;
using store::Arena;
using store::ArenaPool;

constexpr uint64_t kUnit = 4096;

std::shared_ptr<Arena> MakeArena(uint64_t id, uint64_t size) {
  return std::make_shared<Arena>(id, size, UniqueFd(), MemoryMap());
}

TEST(EvictionPlanTest, AdjacentBlocksFormOneGap) {
  ArenaPool pool;
  pool.Add(MakeArena(1, 5 * kUnit));
  std::vector<Allocation> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(*pool.TryAllocate(kUnit));
  pool.Free(blocks[4]);
  EvictionPlan plan(pool, 3 * kUnit, 8 * kUnit, 0);
  plan.Add(blocks[0]);
  EXPECT_FALSE(plan.enough());
  plan.Add(blocks[3]);
  EXPECT_FALSE(plan.enough()) << "two units at the end, one at the start";
  plan.Add(blocks[2]);
  ASSERT_TRUE(plan.enough());
  EXPECT_FALSE(plan.Needed(0)) << "it lies elsewhere";
  EXPECT_TRUE(plan.Needed(1));
  EXPECT_TRUE(plan.Needed(2));
  for (int i : {2, 3}) pool.Free(blocks[i]);
  EXPECT_TRUE(pool.TryAllocate(3 * kUnit).has_value()) << "as was planned";
}

TEST(EvictionPlanTest, OnlyWholeArenasOfOtherTenantsMakeRoom) {
  ArenaPool mine, others;
  others.Add(MakeArena(1, 4 * kUnit));
  others.Add(MakeArena(2, 4 * kUnit));
  std::vector<Allocation> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*others.TryAllocate(2 * kUnit));
  EvictionPlan plan(mine, kUnit, 6 * kUnit, 2 * kUnit);
  plan.Add(blocks[0]);
  plan.Add(blocks[2]);
  EXPECT_FALSE(plan.enough());
  plan.Add(blocks[3]);
  ASSERT_TRUE(plan.enough());
  EXPECT_FALSE(plan.Needed(0)) << "its arena stays, for its neighbour";
  EXPECT_TRUE(plan.Needed(1));
  EXPECT_TRUE(plan.Needed(2));
}

TEST(EvictionPlanTest, ExceededLimitIsRestoredFirst) {
  ArenaPool mine, others;
  for (uint64_t id : {1, 2}) others.Add(MakeArena(id, 4 * kUnit));
  Allocation first = *others.TryAllocate(4 * kUnit), second = *others.TryAllocate(4 * kUnit);
  EvictionPlan plan(mine, kUnit, kUnit, -4 * static_cast<int64_t>(kUnit));
  plan.Add(first);
  EXPECT_FALSE(plan.enough());
  plan.Add(second);
  EXPECT_TRUE(plan.enough());
}

TEST(EvictionPlanTest, SmallBlocksAvoidLargeArenas) {
  ArenaPool pool;
  uint64_t large = 2 * ArenaPool::kSharedArenaBytes;
  pool.Add(MakeArena(1, large));
  Allocation block = *pool.TryAllocate(large);
  EvictionPlan plan(pool, kUnit, kUnit, 0);
  EXPECT_FALSE(plan.Own(block));
  plan.Add(block);
  EXPECT_TRUE(plan.enough()) << "but one can be made in its place";
  EXPECT_TRUE(plan.Needed(0));
}

}  // namespace
}  // namespace stride::engine
