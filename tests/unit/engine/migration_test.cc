// Copies of inputs to a device: waits, outdated copies, links that fail, and reads on a peer.
#include "server/engine/memory/migration.h"

#include "gmock/gmock.h"
#include "server/base/error.h"
#include "tests/unit/engine/memory_parts.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSize = 100'000;

class MigrationTest : public MemoryPartsTest {
 protected:
  void MakeDevices() {
    const auto first = StagedDevice(0), second = StagedDevice(1);
    wire::Link link;
    link.set_from(first.id());
    link.set_to(second.id());
    link.set_peer(true);
    Make({first, second}, {}, {link});
    from_ = &QueueOf(0);
    to_ = &QueueOf(1);
  }
  // A task on the second device that lacks its input there.
  std::shared_ptr<Task> Start(const std::shared_ptr<store::Buffer>& buffer) {
    auto task = TaskOn(*to_, {Use{.buffer = buffer, .read = true}});
    auto block = memory_->BlockingAllocate(*to_, static_cast<uint64_t>(buffer->size));
    EXPECT_TRUE(block.ok()) << block.status();
    if (!block.ok()) return task;
    target_ = *block;
    GlobalTransaction transaction(*core_);
    memory_->migration().Start(transaction, task, buffer, target_);
    EXPECT_EQ(task->memory.num_moves, 1);
    return task;
  }
  std::string ContentAt(DeviceQueue& queue, const store::Buffer& buffer) {
    DeviceQueue& host = QueueOf(core_->memory_place());
    auto block = memory_->BlockingAllocate(host, static_cast<uint64_t>(buffer.size));
    EXPECT_TRUE(memory_->copier()
                    .Copy(queue, buffer.replicas.at(queue.device), host, *block,
                          static_cast<uint64_t>(buffer.size))
                    .ok());
    return {reinterpret_cast<const char*>(block->data()), static_cast<size_t>(buffer.size)};
  }

  DeviceQueue *from_ = nullptr, *to_ = nullptr;
  store::Allocation target_;
};

TEST_F(MigrationTest, PeerCopiesWithoutTheHost) {
  MakeDevices();
  auto buffer = Filled(*from_, kSize, 'p');
  auto worker = WorkerOf(*to_);
  auto task = Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_EQ(worker->num_peer_copies(), 1);
  EXPECT_EQ(worker->num_copies(), 0);
  EXPECT_THAT(PlacesOf(*buffer), ElementsAre(0, 1));
  EXPECT_THAT(tasks_.retried, ElementsAre(task));
  EXPECT_EQ(task->memory.num_moves, 0);
  EXPECT_EQ(ContentAt(*to_, *buffer), std::string(kSize, 'p'));
  EXPECT_EQ(from_->num_copies + to_->num_copies, 0);
}

TEST_F(MigrationTest, BrokenLinkIsReportedOnceAndAvoided) {
  MakeDevices();
  auto buffer = Filled(*from_, kSize, 'b'), later = Filled(*from_, kSize, 'l');
  auto worker = WorkerOf(*to_);
  worker->BreakPeers();
  Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  const int tried = worker->num_peer_copies();
  EXPECT_GE(tried, 1);
  EXPECT_EQ(ContentAt(*to_, *buffer), std::string(kSize, 'b'));
  EXPECT_THAT(log_, HasSubstr("devices/cuda:0 to devices/cuda:1 go through the host from now on"));
  log_.clear();
  Start(later);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_EQ(worker->num_peer_copies(), tried);
  EXPECT_EQ(ContentAt(*to_, *later), std::string(kSize, 'l'));
  EXPECT_EQ(log_, "");
}

// The daemon maps a block of host memory that a device uses in place: the peer cannot read it.
TEST_F(MigrationTest, BlockThatTheDaemonMapsIsCopiedThroughTheHost) {
  MakeDevices();
  auto buffer = EmptyBuffer(kSize);
  WorkerOf(*from_);
  {
    GlobalTransaction transaction(*core_);
    store::Allocation block;
    ASSERT_TRUE(memory_->arenas().AllocateZeroCopy(transaction, *from_, kSize, &block));
    std::memset(block.data(), 'z', kSize);
    buffer->AddReplica(0, block);
  }
  auto worker = WorkerOf(*to_);
  worker->BreakPeers();
  Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_EQ(worker->num_peer_copies(), 0);
  EXPECT_TRUE(memory_->peers().IsPeer(0, 1));
  EXPECT_EQ(ContentAt(*to_, *buffer), std::string(kSize, 'z'));
}

// The first task is cancelled during the copy, and a later one changes the buffer. The second task
// must not see the old content.
TEST_F(MigrationTest, SourceThatChangedMakesTheCopyStale) {
  MakeDevices();
  auto buffer = Filled(QueueOf(core_->memory_place()), kSize, 'o');
  auto worker = WorkerOf(*to_);
  worker->HoldCopies(true);
  auto cancelled = Start(buffer);
  auto second = TaskOn(*to_, {Use{.buffer = buffer, .read = true}});
  auto writer = TaskOn(*from_, {Use{.buffer = buffer, .write = true}});
  {
    TenantTransaction transaction(*core_, TenantId{"t"});
    memory_->copies().AwaitInput(transaction, second, *buffer, 1);
    memory_->copies().AwaitInput(transaction, second, *buffer, 1);  // counted once
    EXPECT_EQ(second->memory.num_moves, 1);
    cancelled->state = TaskState::kDone;
    memory_->copies().ContentChanges(transaction, *writer);
  }
  worker->HoldCopies(false);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_THAT(PlacesOf(*buffer), ElementsAre(core_->memory_place()));
  EXPECT_THAT(tasks_.retried, ElementsAre(second));
  EXPECT_THAT(tasks_.failed, IsEmpty());
  EXPECT_EQ(UsedBytes(1), 0u) << "the block is free again";
}

TEST_F(MigrationTest, WorkerThatDiesDuringTheCopyIsReplaced) {
  MakeDevices();
  auto buffer = Filled(QueueOf(core_->memory_place()), kSize, 'w');
  WorkerOf(*to_)->DieAtCopy(1);
  auto task = Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_THAT(tasks_.retried, ElementsAre(task));
  EXPECT_EQ(ContentAt(*to_, *buffer), std::string(kSize, 'w'));
}

TEST_F(MigrationTest, LostContentFailsTheTask) {
  MakeDevices();
  auto buffer = EmptyBuffer(kSize);
  auto task = Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  ASSERT_EQ(tasks_.failed.size(), 1u);
  EXPECT_EQ(tasks_.failed[0].first, task);
  EXPECT_EQ(ReasonOf(tasks_.failed[0].second), v1::ERROR_REASON_DATA_LOST);
  EXPECT_EQ(UsedBytes(1), 0u);
}

TEST_F(MigrationTest, InlineBytesAreCopied) {
  MakeDevices();
  auto buffer = EmptyBuffer(kSize);
  buffer->inline_bytes = std::make_shared<const std::string>(kSize, 'i');
  Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  EXPECT_EQ(ContentAt(*to_, *buffer), std::string(kSize, 'i'));
}

// A device reads a peer's arena in place only after a copy from it has succeeded.
TEST_F(MigrationTest, SmallInputIsReadOnThePeerAfterACopy) {
  MakeDevices();
  auto buffer = Filled(*from_, kSize, 'x'), small = Filled(*from_, 1000, 's');
  WorkerOf(*to_);
  auto planned = MakePlanned({});
  planned->plan.task.mutable_elementwise();
  auto reader = std::make_shared<Task>(planned);
  reader->options.reads_peers = true;
  reader->uses = {Use{.buffer = small, .read = true}};
  const DeviceQueue& queue = *to_;
  EXPECT_FALSE(memory_->peers().HasBlocks(*reader, queue));
  Start(buffer);
  ASSERT_TRUE(AwaitCopies());
  ASSERT_EQ(small->replicas.at(0).arena, buffer->replicas.at(0).arena);
  EXPECT_EQ(memory_->peers().BlockFor(*reader, reader->uses[0], queue), &small->replicas.at(0));
  reader->uses[0].write = true;
  EXPECT_FALSE(memory_->peers().HasBlocks(*reader, queue));
  reader->uses[0] = {.buffer = buffer, .read = true};  // it is there
  EXPECT_EQ(memory_->peers().BlockFor(*reader, reader->uses[0], queue), &buffer->replicas.at(1));
  GlobalTransaction transaction(*core_);
  memory_->peers().Break(transaction, 0, 1, absl::InternalError("test"));
  reader->uses[0] = {.buffer = small, .read = true};
  EXPECT_FALSE(memory_->peers().HasBlocks(*reader, queue));
}

TEST_F(MigrationTest, FewBytesOfHostMemoryAreAtHand) {
  Make({HostDevice(0)}, {});
  auto small = Filled(QueueOf(0), 1000, 's'), large = Filled(QueueOf(0), 100'000, 'l');
  auto target = memory_->BlockingAllocate(QueueOf(0), 100'000);
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(Migration::BytesAtHand(*small, *target), small->replicas.at(0).data());
  EXPECT_EQ(Migration::BytesAtHand(*large, *target), nullptr);
  EXPECT_EQ(Migration::BytesAtHand(*small, {}), nullptr);
}

}  // namespace
}  // namespace stride::engine
