// Bytes from block to block, between all memory spaces, and blocks in arenas of their own.
#include "server/engine/memory/block_copier.h"

#include "gmock/gmock.h"
#include "server/engine/memory/lent_blocks.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::ElementsAre;

// More than one piece of a file and one slot of staging memory, and no multiple of them.
constexpr int64_t kSize = 3'000'001;

class BlockCopierTest : public MemoryPartsTest {
 protected:
  void SetUp() override {
    Make({HostDevice(0), StagedDevice(0)}, {.memory = 64 * kMiB, .disk = 64 * kMiB});
    for (int64_t i = 0; i < kSize; ++i) bytes_.push_back(static_cast<char>(i * 2654435761 >> 13));
  }
  store::Allocation BlockOn(DeviceQueue& queue) {
    auto block = memory_->BlockingAllocate(queue, kSize);
    EXPECT_TRUE(block.ok()) << block.status();
    return block.ok() ? *block : store::Allocation();
  }
  void Free(DeviceQueue& queue, const store::Allocation& block) {
    GlobalTransaction transaction(*core_);
    Memory::Free(transaction, queue, block);
  }
  std::string Read(DeviceQueue& queue, const store::Allocation& block) {
    DeviceQueue& host = QueueOf(core_->memory_place());
    const store::Allocation copy = BlockOn(host);
    EXPECT_TRUE(memory_->copier().Copy(queue, block, host, copy, kSize).ok());
    std::string bytes(reinterpret_cast<const char*>(copy.data()), static_cast<size_t>(kSize));
    Free(host, copy);
    return bytes;
  }

  std::string bytes_;
};

TEST_F(BlockCopierTest, EachMemorySpaceToEach) {
  for (int from = 0; from < core_->num_places(); ++from) {
    for (int to = 0; to < core_->num_places(); ++to) {
      if (from == to && !core_->MemorySpace(to).host_memory()) continue;  // CopyWithin, or never
      SCOPED_TRACE(
          absl::StrCat(core_->MemorySpace(from).id(), " to ", core_->MemorySpace(to).id()));
      DeviceQueue &source_queue = QueueOf(from), &target_queue = QueueOf(to);
      const store::Allocation source = BlockOn(source_queue), target = BlockOn(target_queue);
      ASSERT_TRUE(memory_->copier().CopyBytes(bytes_, source_queue, source).ok());
      ASSERT_TRUE(memory_->copier().Copy(source_queue, source, target_queue, target, kSize).ok());
      EXPECT_EQ(Read(target_queue, target), bytes_);
      EXPECT_EQ(source_queue.num_copies + target_queue.num_copies, 0);
      Free(source_queue, source);
      Free(target_queue, target);
    }
  }
}

TEST_F(BlockCopierTest, WithinOneDevice) {
  DeviceQueue& queue = QueueOf(1);
  const store::Allocation source = BlockOn(queue), target = BlockOn(queue);
  ASSERT_TRUE(memory_->copier().CopyBytes(bytes_, queue, source).ok());
  auto worker = WorkerOf(queue);
  const int staged = worker->num_copies();
  ASSERT_TRUE(memory_->copier()
                  .CopyWithin(queue, source, target, kSize, SteadyTime::InfiniteFuture())
                  .ok());
  EXPECT_EQ(worker->num_copies(), staged) << "no byte passes through the host";
  EXPECT_EQ(Read(queue, target), bytes_);
}

TEST_F(BlockCopierTest, LentBlockIsAloneInItsArena) {
  LentBlocks lent(core_.get(), queues_.get(), memory_.get(), workers_.get());
  for (int device : {0, 1}) {
    SCOPED_TRACE(device);
    DeviceQueue& queue = QueueOf(device);
    auto first = Filled(queue, 1000, 'f'), second = Filled(queue, 1000, 's');
    ASSERT_EQ(first->replicas.at(device).arena, second->replicas.at(device).arena);
    auto block = lent.PutAlone(second, device, SteadyTime::InfiniteFuture());
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_TRUE(block->arena->alone);
    EXPECT_NE(block->arena, first->replicas.at(device).arena);
    EXPECT_THAT(PlacesOf(*second), ElementsAre(device));
    auto again = lent.PutAlone(second, device, SteadyTime::InfiniteFuture());
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->arena, block->arena) << "it is alone already";
  }
}

// The arena is counted while it is made, and given back when the buffer has an error.
TEST_F(BlockCopierTest, LentBlockOfAFailedBufferIsFreed) {
  LentBlocks lent(core_.get(), queues_.get(), memory_.get(), workers_.get());
  auto buffer = Filled(QueueOf(0), 1000, 'x');
  {
    GlobalTransaction transaction(*core_);
    buffer->Spoil(absl::DataLossError("test"));
  }
  EXPECT_FALSE(lent.PutAlone(buffer, 0, SteadyTime::InfiniteFuture()).ok());
  buffer = nullptr;
  EXPECT_EQ(UsedBytes(0), 0u);
  GlobalTransaction transaction(*core_);
  memory_->arenas().Trim(transaction, queues_->Get(transaction, TenantId{"t"}, 0), 0);
  EXPECT_EQ(memory_->arenas().arena_bytes(transaction, 0), 0u);
}

}  // namespace
}  // namespace stride::engine
