#include "server/store/arena_pool.h"

#include "gtest/gtest.h"

namespace stride::store {
namespace {

std::shared_ptr<Arena> MakeArena(uint64_t id, uint64_t size) {
  return std::make_shared<Arena>(id, size, UniqueFd(), MemoryMap());
}

TEST(ArenaPool, LargeBlocksUseReturnableArenas) {
  EXPECT_EQ(ArenaPool::ArenaSizeFor(100, 4096), ArenaPool::kSharedArenaBytes);
  EXPECT_EQ(ArenaPool::ArenaSizeFor((uint64_t{5} << 30) + 1, 2 << 20),
            (uint64_t{5} << 30) + (2 << 20));
  ArenaPool pool;
  pool.Add(MakeArena(1, uint64_t{5} << 30));
  pool.Add(MakeArena(2, ArenaPool::kSharedArenaBytes));
  auto small = pool.TryAllocate(100);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->arena->id, 2u) << "small blocks stay out of large arenas";
  auto large = pool.TryAllocate(uint64_t{5} << 30);
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->arena->id, 1u);
  EXPECT_FALSE(pool.TryAllocate(uint64_t{1} << 30).has_value());
  pool.Free(*large);
  EXPECT_EQ(pool.TakeEmpty(uint64_t{10} << 30).size(), 0u) << "kept warm";
  EXPECT_EQ(pool.TakeEmpty(0).size(), 1u);
  EXPECT_EQ(pool.arena_bytes(), ArenaPool::kSharedArenaBytes);
}

}  // namespace
}  // namespace stride::store
