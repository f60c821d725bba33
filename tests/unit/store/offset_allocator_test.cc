#include "server/store/offset_allocator.h"

#include <map>
#include <random>

#include "gtest/gtest.h"

namespace stride::store {
namespace {

TEST(OffsetAllocator, GivesAlignedDistinctBlocksUntilFull) {
  OffsetAllocator heap(1024);
  EXPECT_EQ(heap.Allocate(1), 0u);
  EXPECT_EQ(heap.Allocate(256), 256u);
  EXPECT_EQ(heap.Allocate(512), 512u);
  EXPECT_EQ(heap.Allocate(1), std::nullopt);
  heap.Free(256);
  EXPECT_EQ(heap.Allocate(200), 256u);
}

TEST(OffsetAllocator, MergesNeighboursWhenFreed) {
  OffsetAllocator heap(1024);
  for (int i = 0; i < 4; ++i) heap.Allocate(256);
  heap.Free(0);
  heap.Free(512);
  EXPECT_EQ(heap.largest_gap(), 256u);
  heap.Free(256);
  EXPECT_EQ(heap.largest_gap(), 768u);
  heap.Free(768);
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.largest_gap(), 1024u);
}

TEST(OffsetAllocator, RandomSequencesNeverOverlapAndReturnToEmpty) {
  std::mt19937 random(7);
  OffsetAllocator heap(1 << 20);
  std::map<uint64_t, uint64_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !live.empty()) {
      auto victim = std::next(live.begin(), random() % live.size());
      heap.Free(victim->first);
      live.erase(victim);
    } else {
      uint64_t size = 1 + random() % 9000;
      auto offset = heap.Allocate(size);
      if (!offset) continue;
      auto next = live.lower_bound(*offset);
      if (next != live.end()) {
        ASSERT_LE(*offset + size, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
      }
      ASSERT_LE(*offset + size, 1u << 20);
      live[*offset] = size;
    }
  }
  for (auto& [offset, size] : live) heap.Free(offset);
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.largest_gap(), 1u << 20);
}

}  // namespace
}  // namespace stride::store
