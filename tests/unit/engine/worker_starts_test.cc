// The engine with more tenants than the machine has room for.
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/engine/engine.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;

using ::stride::testing::Eventually;

class WorkerStartsTest
    : public ::testing::TestWithParam<wire::DeviceDescription (*)(int, int64_t)> {
 protected:
  WorkerStartsTest() {
    options_.housekeeping_interval = absl::Milliseconds(20);
    options_.start_patience = absl::Milliseconds(300);
    options_.worker_turn = absl::Hours(1);
  }
  ~WorkerStartsTest() override { End(); }
  void End() {
    if (engine_ != nullptr) EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
    broker_.reset();
  }
  void Watch() {
    options_.health = {.interval = absl::Milliseconds(50),
                       .retry = absl::Milliseconds(10),
                       .longest_retry = absl::Milliseconds(10)};
  }
  void Begin() {
    broker_ = std::make_unique<FakeBroker>(
        std::vector<wire::DeviceDescription>{GetParam()(0, int64_t{1} << 36)});
    engine_ = Engine::Create(options_, broker_.get());
    engine_->devices().AwaitHealth(MachineTime() + absl::Seconds(120));
  }

  void AddTenant(const std::string& tenant) {
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    auto session = engine_->sessions().Create({tenant}, request);
    EXPECT_TRUE(session.ok()) << session.status();
  }
  std::shared_ptr<OperationHandle> Submit(const std::string& tenant, const v1::Operation& operation,
                                          SteadyTime deadline = SteadyTime::InfiniteFuture()) {
    auto ticket = engine_->operations().Submit({tenant}, "sessions/s", operation, deadline);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return *ticket;
  }
  std::shared_ptr<OperationHandle> Fill(const std::string& tenant, uint64_t handle,
                                        SteadyTime deadline = SteadyTime::InfiniteFuture()) {
    v1::Operation operation;
    auto* spec = operation.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_INT32);
    spec->add_shape(4);
    operation.add_outputs()->set_handle(handle);
    return Submit(tenant, operation, deadline);
  }
  std::shared_ptr<OperationHandle> Use(const std::string& tenant, uint64_t input, uint64_t handle) {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("negative");
    operation.mutable_ufunc()->add_inputs()->set_handle(input);
    operation.add_outputs()->set_handle(handle);
    return Submit(tenant, operation);
  }
  static absl::Status Wait(const std::shared_ptr<OperationHandle>& ticket) {
    return ticket->Wait(MachineTime() + absl::Seconds(120));
  }
  bool Serves() { return engine_->devices().List()[0].state() == v1::Device::STATE_SERVING; }

  EngineOptions options_;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

// Each shortage of the machine refuses the call that needs more, and affects no other call.
TEST_P(WorkerStartsTest, ShortageFailsOnlyCallsThatNeedAWorker) {
  Watch();
  for (int error : {EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    Begin();  // the previous shortage is remembered for a minute
    AddTenant("a");
    AddTenant("b");
    ASSERT_TRUE(Wait(Fill("a", 1)).ok());
    std::shared_ptr<FakeWorker> worker;  // tenant a's worker; canaries have one task, and end
    for (int i = 1; i <= broker_->num_workers() && worker == nullptr; ++i) {
      auto one = broker_->WaitForWorker(i);
      const auto tasks = one->submitted();
      if (!tasks.empty() && tasks[0].label() != "canary") worker = one;
    }
    ASSERT_NE(worker, nullptr);
    worker->Hold();
    auto of_a = Fill("a", 2);
    ASSERT_TRUE(Eventually([&] { return worker->num_held() > 0; }));
    broker_->set_most_workers(0, SystemError(error, "starting a process"));
    const absl::Status status = Wait(Fill("b", 1));
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << error << ": " << status;
    EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
    // Canaries find no room either, which is no fault of the device.
    const int starts = broker_->num_starts();
    EXPECT_TRUE(Eventually([&] { return broker_->num_starts() > starts + 4; }));
    EXPECT_TRUE(Serves()) << engine_->devices().List()[0].state_reason();
    while (worker->EndNext()) {
    }
    EXPECT_TRUE(Wait(of_a).ok());
    broker_->set_most_workers(INT_MAX, {});
    End();
  }
}

TEST_P(WorkerStartsTest, LeastRecentlyUsedIdleWorkerIsStopped) {
  Begin();
  broker_->set_most_workers(3, SystemError(EMFILE, "making a pipe"));
  std::vector<std::shared_ptr<FakeWorker>> workers;
  for (const std::string tenant : {"a", "b", "c", "d"}) AddTenant(tenant);
  for (const std::string tenant : {"a", "b", "c"}) {
    ASSERT_TRUE(Wait(Fill(tenant, 1)).ok());
    workers.push_back(broker_->WaitForWorker(static_cast<int>(workers.size()) + 1));
  }
  ASSERT_TRUE(Wait(Fill("a", 2)).ok());
  ASSERT_TRUE(Wait(Fill("d", 1)).ok());
  EXPECT_TRUE(workers[0]->alive()) << "used since";
  EXPECT_FALSE(workers[1]->alive());
  EXPECT_TRUE(workers[2]->alive());
  // Its array stays in place.
  EXPECT_TRUE(Wait(Use("b", 1, 2)).ok());
}

TEST_P(WorkerStartsTest, ManyTenantsTakeTurnsWithinTheBound) {
  options_.max_workers = 3;
  options_.max_starts = 2;
  Begin();
  EXPECT_EQ(engine_->devices().MostWorkers(), 3);
  EXPECT_EQ(engine_->devices().List()[0].max_workers(), 3);
  constexpr int kTenants = 60;
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (int i = 0; i < kTenants; ++i) AddTenant(absl::StrCat("t", i));
  for (int round = 0; round < 2; ++round) {
    tickets.clear();
    for (int i = 0; i < kTenants; ++i) {
      const std::string tenant = absl::StrCat("t", i);
      tickets.push_back(round == 0 ? Fill(tenant, 1) : Use(tenant, 1, 2));
    }
    for (const auto& ticket : tickets) EXPECT_TRUE(Wait(ticket).ok());
  }
  EXPECT_TRUE(Eventually([&] { return broker_->num_alive() <= 3; })) << broker_->num_alive();
}

// A busy tenant does not keep the only worker from others.
TEST_P(WorkerStartsTest, BusyWorkerYieldsItsSeatAfterItsTurn) {
  options_.max_workers = 1;
  options_.worker_turn = absl::Milliseconds(20);
  Begin();
  AddTenant("a");
  AddTenant("b");
  broker_->set_hold(true);
  uint64_t handle = 0;
  std::vector<std::shared_ptr<OperationHandle>> of_a;
  for (int i = 0; i < 8; ++i) of_a.push_back(Fill("a", ++handle));
  auto first = broker_->WaitForWorker(1);
  auto of_b = Fill("b", 1);
  EXPECT_TRUE(Eventually([&] {
    if (first->EndNext()) of_a.push_back(Fill("a", ++handle));
    return !first->alive();
  })) << "it never ran out of work";
  broker_->set_hold(false);
  auto second = broker_->WaitForWorker(2);
  ASSERT_TRUE(Eventually([&] { return second->EndNext() || of_b->done(); }));
  EXPECT_TRUE(Wait(of_b).ok());
  for (const auto& ticket : of_a) EXPECT_TRUE(Wait(ticket).ok());
}

TEST_P(WorkerStartsTest, SessionsNeedFreeDescriptors) {
  auto free = std::make_shared<std::atomic<int64_t>>(100);
  options_.descriptor_reserve = 10;
  options_.free_descriptors = [free] { return free->load(); };
  Begin();
  AddTenant("a");
  *free = 10;
  v1::CreateSessionRequest request;
  const absl::Status status = engine_->sessions().Create({"b"}, request).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(MetadataOf(status, "resource"), "file descriptors");
  EXPECT_TRUE(Wait(Fill("a", 1)).ok()) << "who was admitted is served";
  *free = 11;
  EXPECT_TRUE(engine_->sessions().Create({"b"}, request).ok());
}

INSTANTIATE_TEST_SUITE_P(Kinds, WorkerStartsTest, ::testing::Values(HostDevice, StagedDevice),
                         [](const auto& info) { return info.index == 0 ? "cpu" : "cuda"; });

}  // namespace
}  // namespace stride::engine
