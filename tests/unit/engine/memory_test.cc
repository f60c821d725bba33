// Arenas within a memory space's limit, and threads that wait for a block.
#include "server/engine/memory/memory.h"

#include <thread>

#include "gmock/gmock.h"
#include "server/base/error.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using Outcome = Memory::Outcome;

class MemoryTest : public MemoryPartsTest {
 protected:
  Outcome TakeOne(DeviceQueue& queue, uint64_t size, store::Allocation* block) {
    GlobalTransaction transaction(*core_);
    return arenas().Allocate(transaction, queue, size, UINT64_MAX, block);
  }
  Memory& arenas() { return memory_->arenas(); }
  int64_t Room(int place = 0) {
    GlobalTransaction transaction(*core_);
    return arenas().room(transaction, place);
  }
};

TEST_F(MemoryTest, ArenasStayWithinTheLimit) {
  Make({HostDevice(0, 8 * kMiB)}, {});
  store::Allocation small, large, more;
  EXPECT_EQ(TakeOne(QueueOf(0), 1000, &small), Outcome::kAllocated);
  EXPECT_LT(small.arena->size, uint64_t{kMiB}) << "a small array takes little from others";
  EXPECT_EQ(TakeOne(QueueOf(0, "b"), 7 * kMiB, &large), Outcome::kAllocated);
  EXPECT_GE(Room(), 0);
  EXPECT_EQ(TakeOne(QueueOf(0, "c"), kMiB, &more), Outcome::kFull);
  EXPECT_EQ(TakeOne(QueueOf(0), 9 * kMiB, &more), Outcome::kFull);
}

TEST_F(MemoryTest, EmptyArenasOfOthersAreGivenBack) {
  Make({HostDevice(0, 8 * kMiB)}, {});
  DeviceQueue &first = QueueOf(0, "a"), &second = QueueOf(0, "b");
  store::Allocation block;
  ASSERT_EQ(TakeOne(first, 6 * kMiB, &block), Outcome::kAllocated);
  {
    GlobalTransaction transaction(*core_);
    Memory::Free(transaction, first, block);
  }
  EXPECT_EQ(TakeOne(second, 6 * kMiB, &block), Outcome::kAllocated);
  EXPECT_EQ(first.arenas.pool.arena_bytes(), 0u);
}

TEST_F(MemoryTest, WorkMemoryCountsTowardsTheLimit) {
  Make({HostDevice(0, 8 * kMiB)}, {});
  DeviceQueue& queue = QueueOf(0);
  GlobalTransaction transaction(*core_);
  EXPECT_TRUE(arenas().TakeScratch(transaction, queue, 6 * kMiB, UINT64_MAX));
  EXPECT_FALSE(arenas().TakeScratch(transaction, queue, 3 * kMiB, UINT64_MAX));
  EXPECT_EQ(arenas().room(transaction, 0), 2 * kMiB);
  arenas().GiveBackScratch(transaction, queue, 6 * kMiB);
  EXPECT_EQ(arenas().room(transaction, 0), 8 * kMiB);
}

TEST_F(MemoryTest, WorkerMakesTheArenaOfItsDevice) {
  Make({StagedDevice(0, 8 * kMiB)}, {});
  DeviceQueue& queue = QueueOf(0);
  WorkerOf(queue);
  store::Allocation block;
  {
    GlobalTransaction transaction(*core_);
    for (int i = 0; i < 2; ++i) {  // the second time it is being made
      EXPECT_EQ(arenas().Allocate(transaction, queue, kMiB, UINT64_MAX, &block), Outcome::kLater);
    }
  }
  ASSERT_TRUE(Eventually([&] { return TakeOne(queue, kMiB, &block) == Outcome::kAllocated; }));
  EXPECT_EQ(queue.contents.mapped.count(block.arena->id), 1u);
}

TEST_F(MemoryTest, WorkerThatDiesAtAnArenaIsNotALackOfMemory) {
  Make({StagedDevice(0, 8 * kMiB)}, {});
  DeviceQueue& queue = QueueOf(0);
  WorkerOf(queue)->DieAtMap();
  store::Allocation block;
  EXPECT_EQ(TakeOne(queue, kMiB, &block), Outcome::kLater);
  EXPECT_TRUE(Eventually([&] {
    GlobalTransaction transaction(*core_);
    return queue.AwaitsDeath();
  }));
  EXPECT_EQ(TakeOne(queue, kMiB, &block), Outcome::kLater);
  EXPECT_EQ(Room(), 8 * kMiB);
  queue.worker = nullptr;  // as when the death is reported
  WorkerOf(queue);
  EXPECT_TRUE(Eventually([&] { return TakeOne(queue, kMiB, &block) == Outcome::kAllocated; }));
}

TEST_F(MemoryTest, RestoredArenaKeepsItsId) {
  Make({HostDevice(0, 8 * kMiB)}, {});
  auto arena = arenas().MakeHostArena(kMiB);
  ASSERT_TRUE(arena.ok());
  auto earlier = std::make_shared<store::Arena>(77, 2 * kMiB, UniqueFd(), MemoryMap());
  {
    GlobalTransaction transaction(*core_);
    arenas().Restore(transaction, queues_->Get(transaction, TenantId{"t"}, 0), earlier);
  }
  EXPECT_EQ(arenas().NewArenaId(), 78u);
  EXPECT_EQ(Room(), 6 * kMiB);
}

TEST_F(MemoryTest, ThreadWaitsForMemoryOfARunningTask) {
  Make({HostDevice(0, kMiB)}, {.memory = 0});
  auto held = Filled(QueueOf(0), kMiB, 'x');
  DeviceQueue &queue = QueueOf(0), &other = QueueOf(0, "other");
  {
    GlobalTransaction transaction(*core_);
    ++held->pin_count;
    ++queue.num_holding;  // a task of the queue runs
  }
  absl::StatusOr<store::Allocation> block;
  std::thread waiting([&] { block = memory_->BlockingAllocate(other, kMiB); });
  absl::SleepFor(absl::Milliseconds(20));
  held = nullptr;
  {
    GlobalTransaction transaction(*core_);
    --queue.num_holding;
    memory_->Changed(transaction);
  }
  waiting.join();
  EXPECT_TRUE(block.ok()) << block.status();
}

TEST_F(MemoryTest, FullDeviceRefusesAThreadAtOnceOrAfterItsPatience) {
  Make({HostDevice(0, kMiB)}, {.memory = 0, .patience = absl::Milliseconds(100)});
  auto held = Filled(QueueOf(0), kMiB, 'x');
  ++held->pin_count;
  DeviceQueue& other = QueueOf(0, "other");
  absl::Status refused = memory_->BlockingAllocate(other, kMiB).status();
  EXPECT_EQ(ReasonOf(refused), v1::ERROR_REASON_DEVICE_MEMORY) << refused;
  ++QueueOf(0).num_holding;  // a task runs, and does not end
  const SteadyTime before = Now();
  refused = memory_->BlockingAllocate(other, kMiB).status();
  EXPECT_EQ(ReasonOf(refused), v1::ERROR_REASON_DEVICE_MEMORY) << refused;
  EXPECT_GE(Now() - before, core_->options.memory_patience);
}

TEST_F(MemoryTest, ArrayBeginsWhereItFits) {
  Make({HostDevice(0, kMiB)}, {.memory = 4 * kMiB, .disk = 16 * kMiB});
  EXPECT_EQ(memory_->HomeOf(kMiB, 0), 0);
  EXPECT_EQ(memory_->HomeOf(2 * kMiB, 0), core_->memory_place());
  EXPECT_EQ(memory_->HomeOf(8 * kMiB, 0), core_->disk_place());
  EXPECT_EQ(memory_->HomeOf(32 * kMiB, 0), 0) << "its allocation reports the error";
}

}  // namespace
}  // namespace stride::engine
