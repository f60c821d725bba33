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
  heap.Settle();
  EXPECT_EQ(heap.largest_gap(), 256u);
  heap.Free(256);
  EXPECT_EQ(heap.Allocate(768), 0u);  // what does not fit otherwise
  heap.Free(0);
  heap.Free(768);
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.FreeAround(0), std::make_pair(uint64_t{0}, uint64_t{0}));  // no block of ours
  EXPECT_EQ(heap.largest_gap(), 1024u);
}

// Operations in a row make and free arrays of one size: no gap is looked for, and none moved.
TEST(OffsetAllocator, TheNextOfItsSizeTakesABlockAsItIs) {
  OffsetAllocator heap(4096);
  for (int i = 0; i < 4; ++i) heap.Allocate(512);
  EXPECT_EQ(heap.AllocateAgain(512), std::nullopt);
  heap.Free(512);
  heap.Free(1024);
  EXPECT_EQ(heap.used_bytes(), 1024u);
  EXPECT_EQ(heap.largest_gap(), 2048u);  // they have not met
  EXPECT_EQ(heap.AllocateAgain(256), std::nullopt);
  EXPECT_EQ(heap.AllocateAgain(400), 1024u);  // the latest
  EXPECT_EQ(heap.Allocate(512), 512u);
  EXPECT_EQ(heap.Allocate(512), 2048u);
  EXPECT_EQ(heap.used_bytes(), 2560u);
  heap.Free(1536);
  EXPECT_FALSE(heap.Reserve(1536, 1024));  // half of it is taken
  EXPECT_TRUE(heap.Reserve(1536, 512));
}

TEST(OffsetAllocator, FewBlocksStayApart) {
  OffsetAllocator heap(uint64_t{100} * 256);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(heap.Allocate(256), i * 256);
  for (uint64_t i = 0; i < 100; ++i) heap.Free(i * 256);
  EXPECT_GE(heap.largest_gap(), uint64_t{80} * 256);
  EXPECT_TRUE(heap.Settle());
  EXPECT_EQ(heap.largest_gap(), uint64_t{100} * 256);
  EXPECT_FALSE(heap.Settle());
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
  heap.Settle();
  EXPECT_EQ(heap.largest_gap(), 1u << 20);
}

}  // namespace
}  // namespace stride::store
