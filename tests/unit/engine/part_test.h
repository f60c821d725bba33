#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task.h"
#include "server/engine/persistence/journal_writer.h"
#include "tests/support/fake_broker.h"
#include "tests/support/manual_environment.h"

namespace stride::engine {

// The environment of one part of the scheduler: devices without processes, a core without a
// scheduler, and time that the test advances. Work lists go to the test.
class PartTest : public ::testing::Test {
 protected:
  void Start(std::vector<wire::DeviceDescription> devices, EngineOptions options = {}) {
    broker_ = std::make_unique<testing::FakeBroker>(std::move(devices));
    core_ = std::make_unique<Core>(std::move(options), broker_.get());
    journal_writer_ = std::make_unique<JournalWriter>(core_.get());
    queues_ = std::make_unique<DeviceQueues>(core_.get());
    core_->settle = [this](TenantTransaction& transaction) {
      TenantTransaction::Work work = std::exchange(transaction.work(), {});
      pumped_.insert(pumped_.end(), work.pumped.begin(), work.pumped.end());
      freed_.insert(freed_.end(), work.freed.begin(), work.freed.end());
      devices_.insert(devices_.end(), work.devices.begin(), work.devices.end());
    };
  }
  // A test that makes parts ends them first.
  void TearDown() override {
    if (core_ == nullptr) return;
    broker_->Shutdown();
    core_->Stop();
  }

  DeviceQueue& QueueOf(const std::string& tenant, int device = 0) {
    TenantTransaction transaction(*core_, TenantId{tenant});
    return queues_->Get(transaction, TenantId{tenant}, device);
  }
  std::shared_ptr<store::Buffer> NewBuffer(const std::string& tenant, int64_t bytes = 8) {
    return std::make_shared<store::Buffer>(TenantId{tenant}, bytes, core_->reclaimer);
  }
  // A task of the queue's tenant.
  std::shared_ptr<Task> NewTask(DeviceQueue& queue, Uses uses = {}) {
    auto task = std::make_shared<Task>();
    task->tenant = queue.tenant;
    task->uses = std::move(uses);
    return task;
  }
  // A task that the queue prepares.
  std::shared_ptr<Task> Prepared(DeviceQueue& queue, Uses uses = {}) {
    auto task = NewTask(queue, std::move(uses));
    task->queue = &queue;
    task->state = TaskState::kPreparing;
    queue.preparing.Add(*task);
    return task;
  }
  // Calls `work` in a transaction of the tenant, or in a global one.
  template <typename Work>
  void In(const std::string& tenant, Work work) {
    TenantTransaction transaction(*core_, TenantId{tenant});
    work(transaction);
  }
  template <typename Work>
  void InAll(Work work) {
    GlobalTransaction transaction(*core_);
    work(transaction);
  }

  testing::ManualEnvironment time_;
  std::unique_ptr<testing::FakeBroker> broker_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<JournalWriter> journal_writer_;
  std::unique_ptr<DeviceQueues> queues_;
  // Work lists so far.
  std::vector<DeviceQueue*> pumped_;
  std::vector<std::shared_ptr<Task>> freed_;
  std::vector<int> devices_;
};

}  // namespace stride::engine
