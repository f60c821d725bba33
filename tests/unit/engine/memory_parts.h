#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/memory/memory_manager.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/store/spill_file.h"
#include "tests/support/await.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {

// Keeps what the memory parts report about tasks. Global transactions guard it.
struct FakeMemoryEvents : public TaskEvents {
  void Evaluate(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    freed.push_back(task);
  }
  void Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override {
    retried.push_back(task);
    if (on_retry) on_retry(*transaction.global(), task);
  }
  void Unplace(TenantTransaction&, Task& task, TaskState next) override {
    if (next == TaskState::kWaiting) postponed.push_back(&task);
    task.state = next;
  }
  void Requeue(TenantTransaction&, const std::shared_ptr<Task>&) override {}
  void LeaveQueue(TenantTransaction&, const std::shared_ptr<Task>&) override {}
  void Complete(TenantTransaction&, const std::shared_ptr<Task>& task,
                absl::Status status) override {
    task->state = TaskState::kDone;
    ended.emplace_back(task, std::move(status));
  }
  void EndUnrun(TenantTransaction&, const std::shared_ptr<Task>& task,
                absl::Status status) override {
    failed.emplace_back(task, std::move(status));
  }

  std::function<void(GlobalTransaction&, const std::shared_ptr<Task>&)> on_retry;
  std::vector<std::shared_ptr<Task>> retried, freed;
  std::vector<Task*> postponed;
  std::vector<std::pair<std::shared_ptr<Task>, absl::Status>> ended, failed;
};

// Starts a fake worker for each device queue that has none, or a dead one.
struct FakeWorkerSource : public WorkerSource {
  explicit FakeWorkerSource(Core* core) : core(core) {}
  absl::StatusOr<std::shared_ptr<broker::Worker>> BlockingWorker(
      DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena,
      SteadyTime deadline) override {
    GlobalTransaction transaction(*core);
    absl::Status status = AwaitWorker(transaction, queue, deadline);
    if (status.ok() && arena != nullptr) status = MapArena(queue, arena, /*peer=*/false);
    if (!status.ok()) return status;
    return queue.worker;
  }
  absl::Status AwaitWorker(GlobalTransaction&, DeviceQueue& queue, SteadyTime) override {
    if (queue.worker != nullptr && queue.worker->alive()) return absl::OkStatus();
    queue.contents.mapped.clear();
    auto worker = core->broker->StartWorker(queue.device);
    if (worker.ok()) queue.worker = *std::move(worker);
    return worker.status();
  }
  Core* const core;
};

// The parts that place memory, with a fake broker and without a scheduler.
class MemoryPartsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMiB = int64_t{1} << 20;

  struct Limits {
    int64_t memory = 64 * kMiB;
    int64_t disk = 0;
    std::string folder = absl::StrCat(::testing::TempDir(), "/memory-parts-", getpid());
    absl::Duration patience = absl::Seconds(100);
  };
  void Make(std::vector<wire::DeviceDescription> devices, Limits limits,
            std::vector<wire::Link> links = {}) {
    broker_ = std::make_unique<testing::FakeBroker>(std::move(devices));
    broker_->set_links(std::move(links));
    EngineOptions options;
    options.device_memory_share = 1;
    options.spill_memory_bytes = limits.memory;
    options.spill_disk_bytes = limits.disk;
    options.spill_folder = limits.folder;
    if (limits.disk > 0) store::PrepareSpillFolder(limits.folder).IgnoreError();
    folder_ = limits.folder;
    options.memory_patience = limits.patience;
    options.log = [this](const std::string& line) { log_ += line + "\n"; };
    core_ = std::make_unique<Core>(std::move(options), broker_.get());
    journal_writer_ = std::make_unique<JournalWriter>(core_.get());
    queues_ = std::make_unique<DeviceQueues>(core_.get());
    workers_ = std::make_unique<FakeWorkerSource>(core_.get());
    memory_ = std::make_unique<MemoryManager>(
        core_.get(), queues_.get(), workers_.get(), &tasks_,
        [](GlobalTransaction&, const DeviceQueue&, std::optional<int>) { return false; });
  }
  void TearDown() override {
    core_->Stop();
    std::error_code ignored;  // only a test with files has a folder
    std::filesystem::remove(folder_, ignored);
  }

  DeviceQueue& QueueOf(int place, const char* tenant = "t") {
    GlobalTransaction transaction(*core_);
    return queues_->Get(transaction, TenantId{tenant}, place);
  }
  std::shared_ptr<testing::FakeWorker> WorkerOf(DeviceQueue& queue) {
    EXPECT_TRUE(workers_->BlockingWorker(queue, nullptr, SteadyTime::InfiniteFuture()).ok());
    return std::static_pointer_cast<testing::FakeWorker>(queue.worker);
  }
  std::shared_ptr<store::Buffer> EmptyBuffer(int64_t size, const char* tenant = "t") {
    return std::make_shared<store::Buffer>(TenantId{tenant}, size, core_->reclaimer);
  }
  // A buffer with a block on the queue that consists of this character.
  std::shared_ptr<store::Buffer> Filled(DeviceQueue& queue, int64_t size, char content) {
    auto buffer = EmptyBuffer(size, queue.tenant.value.c_str());
    auto block = memory_->BlockingAllocate(queue, static_cast<uint64_t>(size));
    EXPECT_TRUE(block.ok()) << block.status();
    if (!block.ok()) return buffer;
    const std::string bytes(static_cast<size_t>(size), content);
    EXPECT_TRUE(memory_->copier().CopyBytes(bytes, queue, *block).ok());
    GlobalTransaction transaction(*core_);
    buffer->AddReplica(queue.device, *block);
    buffer->Touch();
    return buffer;
  }
  std::shared_ptr<Task> TaskOn(DeviceQueue& queue, Uses uses, int priority = 0) {
    auto task = std::make_shared<Task>();
    task->tenant = queue.tenant;
    task->queue = &queue;
    task->state = TaskState::kPreparing;
    task->options.priority = priority;
    task->uses = std::move(uses);
    return task;
  }
  Memory::Outcome Allocate(DeviceQueue& queue, uint64_t size, store::Allocation* block) {
    GlobalTransaction transaction(*core_);
    return memory_->eviction().Allocate(transaction, queue, size, UINT64_MAX, block);
  }
  bool AwaitCopies() {
    return testing::Eventually([&] {
      GlobalTransaction transaction(*core_);
      return memory_->copies().empty(transaction);
    });
  }
  // Places where the buffer has a block, in order.
  std::vector<int> PlacesOf(const store::Buffer& buffer) {
    GlobalTransaction transaction(*core_);
    std::vector<int> places;
    for (const auto& [place, block] : buffer.replicas) places.push_back(place);
    return places;
  }
  uint64_t UsedBytes(int place) {
    GlobalTransaction transaction(*core_);
    memory_->arenas().Reclaim(transaction);
    return memory_->arenas().used_bytes(transaction, place);
  }

  std::string folder_;
  std::string log_;  // written in global transactions
  FakeMemoryEvents tasks_;
  std::unique_ptr<testing::FakeBroker> broker_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<JournalWriter> journal_writer_;
  std::unique_ptr<DeviceQueues> queues_;
  std::unique_ptr<FakeWorkerSource> workers_;
  std::unique_ptr<MemoryManager> memory_;
};

}  // namespace stride::engine
