#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/memory/memory_manager.h"
#include "server/engine/memory/out_of_core.h"
#include "server/engine/memory/task_memory.h"
#include "server/engine/scheduling/cancellation.h"
#include "server/engine/scheduling/code_loader.h"
#include "server/engine/scheduling/hazards.h"
#include "server/engine/scheduling/health_watch.h"
#include "server/engine/scheduling/placer.h"
#include "server/engine/scheduling/time_slices.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/engine/fake_task_events.h"
#include "tests/unit/engine/memory_parts.h"
#include "tests/unit/engine/part_test.h"

namespace stride::engine {

// The parts that others of the scheduler call, without a scheduler: its events are noted. One queue
// has a worker, whose tasks end when the test says so.
class SchedulingPartsTest : public PartTest {
 protected:
  void Start(EngineOptions options = {}) {
    options.health.interval = absl::Hours(1);
    PartTest::Start({testing::HostDevice(0)}, std::move(options));
    workers_ = std::make_unique<FakeWorkerSource>(core_.get());
    health_ = std::make_unique<HealthWatch>(
        core_.get(), HealthWatch::Hooks{[](GlobalTransaction&, int) {},
                                        [](GlobalTransaction&, int) { return false; },
                                        [](GlobalTransaction&, int) {}});
    placer_ = std::make_unique<Placer>(core_.get(), health_.get());
    memory_ = std::make_unique<MemoryManager>(
        core_.get(), queues_.get(), workers_.get(), &events_,
        [](GlobalTransaction&, const DeviceQueue&, std::optional<int>) { return false; });
    cancellation_ = std::make_unique<Cancellation>(core_.get(), &events_);
    out_of_core_ =
        std::make_unique<OutOfCoreExecutor>(core_.get(), queues_.get(), memory_.get(),
                                            workers_.get(), &events_, nullptr, cancellation_.get());
    task_memory_ =
        std::make_unique<TaskMemory>(core_.get(), memory_.get(), out_of_core_.get(), &events_);
    slices_ = std::make_unique<TimeSlices>(core_.get());
    loader_ = std::make_unique<CodeLoader>(core_.get());
    broker_->set_hold(true);
    queue_ = &QueueOf("t");
    queue_->worker = *broker_->StartWorker(0);
    worker_ = broker_->WaitForWorker(1);
    // The test reports what it does.
    worker_->Adopt({.tasks_done = [](absl::Span<const wire::TaskResult>) {},
                    .printed = [](uint64_t, std::string_view, uint64_t) {},
                    .cancelled = [](uint64_t, bool) {},
                    .died = [](const broker::WorkerDeath&) {}});
  }
  void TearDown() override {
    if (core_ == nullptr) return;
    health_->Stop();
    queue_->sending.ready.clear();
    queue_->sending.in_flight.clear();
    for (const auto& task : tasks_) {
      queue_->preparing.Remove(*task);
      ReleaseAccesses(*task);
      task->uses.clear();
      task->order.dependents.clear();
    }
    PartTest::TearDown();
  }

  // A buffer with a block on the queue's device.
  std::shared_ptr<store::Buffer> Placed(int64_t bytes = 64) {
    auto buffer = NewBuffer("t", bytes);
    auto block = memory_->BlockingAllocate(*queue_, static_cast<uint64_t>(bytes));
    EXPECT_TRUE(block.ok()) << block.status();
    if (block.ok()) buffer->AddReplica(queue_->device, *block);
    return buffer;
  }
  // An operation that the queue prepares: it reads `from` and makes all of `to`.
  std::shared_ptr<Task> Operation(const std::string& label, std::shared_ptr<store::Buffer> from,
                                  std::shared_ptr<store::Buffer> to) {
    auto task = Prepared(*queue_, {Use{.buffer = std::move(from), .read = true},
                                   Use{.buffer = std::move(to), .write = true, .fresh = true}});
    task->label = label;
    task->planned = MakePlanned(ops::testing::Good(ops::testing::UfuncOf("negative", 1),
                                                   {ops::testing::Array(DType::kUInt8, {64})}));
    RegisterAccesses(task);
    tasks_.push_back(task);
    return task;
  }
  std::shared_ptr<Task> Operation(const std::string& label) {
    return Operation(label, Placed(), Placed());
  }
  // An operation in the worker's queue.
  std::shared_ptr<Task> Sent(std::shared_ptr<Task> task) {
    queue_->preparing.Remove(*task);
    task->state = TaskState::kDispatched;
    task->timeline.dispatch_time = core_->Now();
    task->sent.first_sequence = task->sent.last_sequence = queue_->sending.next_sequence;
    queue_->sending.in_flight.push_back({queue_->sending.next_sequence++, task, true});
    return task;
  }

  FakeTaskEvents events_;
  std::unique_ptr<FakeWorkerSource> workers_;
  std::unique_ptr<HealthWatch> health_;
  std::unique_ptr<Placer> placer_;
  std::unique_ptr<MemoryManager> memory_;
  std::unique_ptr<Cancellation> cancellation_;
  std::unique_ptr<OutOfCoreExecutor> out_of_core_;
  std::unique_ptr<TaskMemory> task_memory_;
  std::unique_ptr<TimeSlices> slices_;
  std::unique_ptr<CodeLoader> loader_;
  DeviceQueue* queue_ = nullptr;
  std::shared_ptr<testing::FakeWorker> worker_;
  std::vector<std::shared_ptr<Task>> tasks_;
};

}  // namespace stride::engine
