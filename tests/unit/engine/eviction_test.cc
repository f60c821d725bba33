// Victims of a full memory space, their destination, and what a failed or outdated copy leaves.
#include "server/engine/memory/eviction.h"

#include <fcntl.h>

#include "gmock/gmock.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Outcome = Memory::Outcome;

class EvictionTest : public MemoryPartsTest {
 protected:
  static constexpr int64_t kQuarter = kMiB / 4;
  // A device of 1 MiB that four buffers fill, `a` used least recently.
  void MakeFull(wire::DeviceDescription device, Limits limits) {
    Make({std::move(device)}, limits);
    queue_ = &QueueOf(0);
    for (char content : {'a', 'b', 'c', 'd'})
      buffers_.push_back(Filled(*queue_, kQuarter, content));
  }
  Outcome AllocateOne() { return Allocate(*queue_, kQuarter, &block_); }

  DeviceQueue* queue_ = nullptr;
  std::vector<std::shared_ptr<store::Buffer>> buffers_;
  store::Allocation block_;
};

TEST_F(EvictionTest, LeastRecentlyUsedBufferIsEvicted) {
  MakeFull(HostDevice(0, kMiB), {});
  {
    GlobalTransaction transaction(*core_);
    buffers_[0]->Touch();
  }
  EXPECT_EQ(AllocateOne(), Outcome::kLater);
  ASSERT_TRUE(AwaitCopies());
  const int host = core_->memory_place();
  EXPECT_THAT(PlacesOf(*buffers_[1]), ElementsAre(host));
  for (int i : {0, 2, 3}) EXPECT_THAT(PlacesOf(*buffers_[i]), ElementsAre(0)) << i;
  const store::Allocation& moved = buffers_[1]->replicas.at(host);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.data()), kQuarter),
            std::string(kQuarter, 'b'));
  EXPECT_EQ(AllocateOne(), Outcome::kAllocated);
}

TEST_F(EvictionTest, BufferWithAnotherCopyIsDroppedFirst) {
  MakeFull(HostDevice(0, kMiB), {});
  buffers_[3]->inline_bytes = std::make_shared<const std::string>(kQuarter, 'd');
  {
    GlobalTransaction transaction(*core_);
    core_->reclaimer->List(*buffers_[3]);
  }
  EXPECT_EQ(AllocateOne(), Outcome::kAllocated);  // at once: nothing is copied
  EXPECT_THAT(PlacesOf(*buffers_[3]), IsEmpty());
  EXPECT_THAT(PlacesOf(*buffers_[0]), ElementsAre(0));
}

TEST_F(EvictionTest, PinnedBuffersStay) {
  MakeFull(HostDevice(0, kMiB), {});
  for (const auto& buffer : buffers_) ++buffer->pin_count;
  EXPECT_EQ(AllocateOne(), Outcome::kFull);
  --buffers_[2]->pin_count;
  EXPECT_EQ(AllocateOne(), Outcome::kLater);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_THAT(PlacesOf(*buffers_[2]), ElementsAre(core_->memory_place()));
}

TEST_F(EvictionTest, BuffersOfAnEarlierWaiterStay) {
  MakeFull(HostDevice(0, kMiB), {});
  DeviceQueue& other = QueueOf(0, "other");
  auto waiting = TaskOn(*queue_, {Use{.buffer = buffers_[0], .read = true},
                                  Use{.buffer = buffers_[1], .read = true}});
  {
    GlobalTransaction transaction(*core_);
    memory_->waiters().Enter(transaction, waiting);
  }
  store::Allocation block;
  EXPECT_EQ(Allocate(other, kQuarter, &block), Outcome::kLater);
  ASSERT_TRUE(AwaitCopies());
  for (int i : {0, 1}) EXPECT_THAT(PlacesOf(*buffers_[i]), ElementsAre(0)) << i;
  GlobalTransaction transaction(*core_);
  memory_->waiters().Leave(transaction, *waiting);
}

// Each task lacks two blocks and there is room for two. Without an order each would evict the block
// of the other when it asks for its second.
TEST_F(EvictionTest, TwoTenantsThatEachLackTwoBlocksBothGetThem) {
  Make({HostDevice(0, kMiB)}, {});
  constexpr int64_t kBlock = kMiB * 3 / 8;
  auto full = Filled(QueueOf(0, "full"), kMiB, 'x');
  ++full->pin_count;
  int num_served = 0;
  // As a task takes its memory: all its blocks, or none. What it makes is idle afterwards.
  tasks_.on_retry = [&](GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
    std::vector<store::Allocation> blocks(task->uses.size());
    for (const Use& use : task->uses) ++use.buffer->pin_count;
    bool taken = true;
    for (size_t i = 0; taken && i < blocks.size(); ++i) {
      taken = memory_->eviction().Allocate(transaction, *task->queue, kBlock, task->memory.turn,
                                           &blocks[i]) == Outcome::kAllocated;
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      store::Buffer& buffer = *task->uses[i].buffer;
      --buffer.pin_count;
      if (taken) {
        buffer.AddReplica(0, blocks[i]);
        buffer.Touch();
      } else if (blocks[i].arena != nullptr) {
        Memory::Free(transaction, *task->queue, blocks[i]);
      }
    }
    if (!taken) return;
    memory_->waiters().Leave(transaction, *task);
    ++num_served;
  };
  std::vector<std::shared_ptr<Task>> waiting;
  for (const char* tenant : {"a", "b"}) {
    Uses uses;
    for (int i = 0; i < 2; ++i)
      uses.push_back({.buffer = EmptyBuffer(kBlock, tenant), .write = true, .fresh = true});
    waiting.push_back(TaskOn(QueueOf(0, tenant), std::move(uses)));
    GlobalTransaction transaction(*core_);
    memory_->waiters().Enter(transaction, waiting.back());
    memory_->waiters().Retry(transaction);
  }
  EXPECT_EQ(num_served, 0);
  {
    GlobalTransaction transaction(*core_);
    memory_->Unpin(transaction, *full);
  }
  EXPECT_TRUE(Eventually([&] {
    GlobalTransaction transaction(*core_);
    return num_served == 2;
  }));
}

TEST_F(EvictionTest, FileThatCannotBeWrittenKeepsTheBuffer) {
  MakeFull(HostDevice(0, kMiB), {.memory = kQuarter / 2, .disk = 16 * kMiB});
  {
    GlobalTransaction transaction(*core_);
    DeviceQueue& disk = queues_->Get(transaction, TenantId{"t"}, core_->disk_place());
    UniqueFd full(open("/dev/full", O_RDWR | O_CLOEXEC));
    memory_->arenas().Restore(
        transaction, disk,
        std::make_shared<store::Arena>(1000, kMiB, std::move(full), MemoryMap()));
  }
  EXPECT_EQ(AllocateOne(), Outcome::kLater);
  ASSERT_TRUE(AwaitCopies());
  for (const auto& buffer : buffers_) EXPECT_THAT(PlacesOf(*buffer), ElementsAre(0));
  EXPECT_EQ(UsedBytes(core_->disk_place()), 0u) << "its block is free again";
  EXPECT_THAT(log_, HasSubstr("idle arrays cannot leave for the disk"));
  EXPECT_EQ(AllocateOne(), Outcome::kFull);  // reported once
  EXPECT_EQ(AllocateOne(), Outcome::kFull);  // nothing is written there for a while
}

TEST_F(EvictionTest, FileThatCannotBeMadeIsFull) {
  MakeFull(HostDevice(0, kMiB), {.memory = 0, .disk = 16 * kMiB, .folder = "/dev/null/none"});
  EXPECT_EQ(AllocateOne(), Outcome::kLater);  // the file is being made
  EXPECT_TRUE(Eventually([&] { return AllocateOne() == Outcome::kFull; }));
  EXPECT_THAT(log_, HasSubstr("idle arrays cannot leave for the disk"));
}

TEST_F(EvictionTest, WriteDuringTheCopyKeepsTheBufferWhereItIs) {
  MakeFull(StagedDevice(0, kMiB), {});
  auto worker = WorkerOf(*queue_);
  worker->HoldCopies(true);
  ASSERT_EQ(AllocateOne(), Outcome::kLater);
  auto upload = TaskOn(*queue_, {Use{.buffer = buffers_[0], .write = true}});
  {
    TenantTransaction transaction(*core_, TenantId{"t"});
    EXPECT_TRUE(memory_->copies().IsCopied(transaction, *buffers_[0]));
    // An upload waits; a launch makes the copy stale.
    EXPECT_TRUE(memory_->copies().AwaitBeforeWrite(transaction, upload));
    memory_->copies().ContentChanges(transaction, *upload);
  }
  worker->HoldCopies(false);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_THAT(PlacesOf(*buffers_[0]), ElementsAre(0));
  EXPECT_EQ(UsedBytes(core_->memory_place()), 0u);
  EXPECT_THAT(tasks_.freed, ElementsAre(upload));
}

}  // namespace
}  // namespace stride::engine
