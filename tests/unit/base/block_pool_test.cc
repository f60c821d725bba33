#include "server/base/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace stride {
namespace {

TEST(BlockPoolTest, BlocksAreAlignedAndDisjoint) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t bytes = 0; bytes <= BlockPool::kLargestBytes + 200; bytes += 37) {
    auto* block = static_cast<char*>(BlockPool::Take(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % BlockPool::kUnitBytes, 0u) << bytes;
    std::memset(block, static_cast<char>(bytes), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (const auto& [block, bytes] : blocks) {
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], static_cast<char>(bytes));
    BlockPool::Give(block, bytes);
  }
}

TEST(BlockPoolTest, FreedBlockIsReusedByAnotherThread) {
  if (!BlockPool::kPools) GTEST_SKIP() << "blocks are not pooled under a sanitizer";
  constexpr size_t kBytes = 1500;  // a size that nothing else here uses
  constexpr int kBlocks = 1000;
  BlockPool::Trim();
  std::set<void*> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.insert(BlockPool::Take(kBytes));
  ASSERT_EQ(blocks.size(), static_cast<size_t>(kBlocks));
  // At its end the thread also returns its free blocks to the depot.
  std::thread([&] {
    for (void* block : blocks) BlockPool::Give(block, kBytes);
  }).join();
  EXPECT_GE(BlockPool::free_bytes(), kBlocks * kBytes);
  int again = 0;
  std::vector<void*> taken;
  for (int i = 0; i < kBlocks; ++i) {
    taken.push_back(BlockPool::Take(kBytes));
    again += blocks.count(taken.back());
  }
  EXPECT_EQ(again, kBlocks);
  for (void* block : taken) BlockPool::Give(block, kBytes);
  BlockPool::Trim();
  EXPECT_EQ(BlockPool::free_bytes(), 0u);
}

TEST(BlockPoolTest, FreeBlocksAreBounded) {
  if (!BlockPool::kPools) GTEST_SKIP() << "blocks are not pooled under a sanitizer";
  constexpr size_t kBytes = BlockPool::kLargestBytes;
  std::vector<void*> blocks;
  for (size_t taken = 0; taken <= 2 * BlockPool::kMaxFreeBytes; taken += kBytes)
    blocks.push_back(BlockPool::Take(kBytes));
  for (void* block : blocks) BlockPool::Give(block, kBytes);
  EXPECT_LE(BlockPool::free_bytes(), BlockPool::kMaxFreeBytes);
  EXPECT_GT(BlockPool::free_bytes(), BlockPool::kMaxFreeBytes / 2);
  BlockPool::Trim();
}

// A thread's own variables may free objects after its magazines are gone.
TEST(BlockPoolTest, BlocksMayBeFreedDuringThreadExit) {
  std::thread([] {
    static thread_local std::shared_ptr<std::vector<int>> kept;
    kept = MakePooled<std::vector<int>>(100, 7);  // constructed before the thread's magazines
    BlockPool::Give(BlockPool::Take(64), 64);
  }).join();
}

TEST(BlockPoolTest, ServesManyThreadsAtOnce) {
  constexpr int kThreads = 4, kTurns = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      std::vector<std::shared_ptr<std::pair<int, int>>> kept(300);
      for (int i = 0; i < kTurns; ++i) {
        auto& place = kept[static_cast<size_t>(i * 7 % 300)];
        if (place != nullptr) {
          ASSERT_EQ(place->first, t);
        }
        place = MakePooled<std::pair<int, int>>(t, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stride
