// Tenants that share a device, through the engine, with fake workers that only spend time.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/engine/engine.h"
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

class FairnessTest : public ::testing::Test {
 protected:
  void Start(EngineOptions options) {
    broker_ = std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{HostDevice(0)});
    engine_ = Engine::Create(options, broker_.get());
    for (const TenantId& tenant : {kA, kB}) {
      v1::CreateSessionRequest request;
      request.set_session_id("s");
      ASSERT_TRUE(engine_->sessions().Create(tenant, request).ok());
    }
  }
  void TearDown() override {
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }

  std::shared_ptr<OperationHandle> Fill(const TenantId& tenant) {
    v1::Operation operation;
    auto* spec = operation.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_INT32);
    spec->add_shape(4);
    operation.add_outputs()->set_inline_result(true);
    auto ticket =
        engine_->operations().Submit(tenant, "sessions/s", operation, SteadyTime::InfiniteFuture());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return *ticket;
  }

  const TenantId kA{"a"}, kB{"b"};
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(FairnessTest, MeasuredTimeIsSharedByWeight) {
  Start({.fair_quantum = absl::Milliseconds(5),
         .fair_hand_over = absl::Milliseconds(50),
         .tenant_weight = [](const TenantId& tenant) { return tenant.value == "b" ? 3.0 : 1.0; }});
  broker_->set_run_time(absl::Microseconds(200));
  constexpr int kTasks = 4000;
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  Fill(kA)->Wait(SteadyTime::InfiniteFuture()).IgnoreError();
  auto a = broker_->WaitForWorker(1);
  Fill(kB)->Wait(SteadyTime::InfiniteFuture()).IgnoreError();
  auto b = broker_->WaitForWorker(2);
  for (int i = 0; i < kTasks; ++i) {
    tickets.push_back(Fill(kA));
    tickets.push_back(Fill(kB));
  }
  double a_before = a->run_seconds(), b_before = b->run_seconds();
  AWAIT(b->num_ended() >= kTasks * 95 / 100);
  double a_ran = a->run_seconds() - a_before, b_ran = b->run_seconds() - b_before;
  EXPECT_LT(a->num_ended(), kTasks) << "both had work all the time";
  EXPECT_NEAR(b_ran / a_ran, 3, 0.15) << a_ran << " s and " << b_ran << " s";
  for (const auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(SteadyTime::InfiniteFuture()).ok());
}

TEST_F(FairnessTest, LongTaskDelaysOtherTenantByOneQuantum) {
  Start({.fair_quantum = absl::Milliseconds(100), .fair_hand_over = absl::Milliseconds(20)});
  broker_->set_hold(true);
  auto long_one = Fill(kA);
  auto later = Fill(kA);
  auto a = broker_->WaitForWorker(1);
  AWAIT(a->num_held() >= 2);
  broker_->set_hold(false);
  for (int i = 0; i < 5; ++i) {
    SteadyTime begin = Now();
    EXPECT_TRUE(Fill(kB)->Wait(SteadyTime::InfiniteFuture()).ok());
    EXPECT_LT(Now() - begin, absl::Milliseconds(100 + 20 + 300)) << "with room for a slow machine";
    EXPECT_FALSE(long_one->done());
  }
  a->EndNext(absl::OkStatus(), 1.0);
  a->EndNext();
  EXPECT_TRUE(long_one->Wait(SteadyTime::InfiniteFuture()).ok());
  EXPECT_TRUE(later->Wait(SteadyTime::InfiniteFuture()).ok());
}

TEST_F(FairnessTest, SecondTenantEndsDeepQueueOfSingleTenant) {
  Start({});
  broker_->set_hold(true);
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (int i = 0; i < 300; ++i) tickets.push_back(Fill(kA));
  auto a = broker_->WaitForWorker(1);
  AWAIT(a->num_held() >= 256);
  // Each takes 10 ms, and the engine measures that.
  for (int i = 0; i < 100; ++i) a->EndNext(absl::OkStatus(), 10e-3);
  EXPECT_EQ(a->num_held(), 200);
  auto waiting = Fill(kB);
  auto b = broker_->WaitForWorker(2);
  AWAIT(b->num_held() >= 1);
  for (int i = 0; i < 200; ++i) tickets.push_back(Fill(kA));
  absl::SleepFor(absl::Milliseconds(50));
  // It has time slices now: no task is sent before those in flight are done.
  EXPECT_EQ(a->num_held(), 200);
  b->EndNext(absl::OkStatus(), 10e-3);
  EXPECT_TRUE(waiting->Wait(SteadyTime::InfiniteFuture()).ok());
  AWAIT(a->num_held() >= 256);
  while (a->EndNext(absl::OkStatus(), 1e-5)) {
  }
  for (const auto& ticket : tickets) {
    while (!ticket->done() && a->EndNext(absl::OkStatus(), 1e-5)) {
    }
    EXPECT_TRUE(ticket->Wait(SteadyTime::InfiniteFuture()).ok());
  }
}

}  // namespace
}  // namespace stride::engine
