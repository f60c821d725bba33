#include "server/engine/core/health.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/engine.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::HasSubstr;

const TenantId kA{"a"}, kB{"b"};
const SteadyTime kStart = SteadyTime::SinceBoot(absl::Seconds(1000));
constexpr HealthOptions kOptions{.interval = absl::Seconds(30)};

// --- DeviceHealth ---

TEST(DeviceHealthTest, HealthIsKnownAfterFirstProbe) {
  DeviceHealth health(kOptions, kStart);
  EXPECT_TRUE(health.serving()) << "work need not wait for it";
  EXPECT_FALSE(health.known());
  EXPECT_EQ(health.next_probe(), kStart);
  health.Passed(kStart);
  EXPECT_TRUE(health.known());
  EXPECT_EQ(health.next_probe(), kStart + absl::Seconds(30));
}

TEST(DeviceHealthTest, CompletedWorkProvesHealth) {
  DeviceHealth health(kOptions, kStart);
  health.Passed(kStart);
  health.Worked(kStart + absl::Seconds(29));
  EXPECT_EQ(health.next_probe(), kStart + absl::Seconds(59));
}

TEST(DeviceHealthTest, ConsecutiveFailuresMarkUnhealthyUntilProbePasses) {
  DeviceHealth health(kOptions, kStart);
  health.Passed(kStart);
  health.Failed("one", kStart);
  health.Failed("two", kStart);
  health.Passed(kStart);
  health.Failed("one", kStart);
  EXPECT_EQ(health.next_probe(), kStart + absl::Seconds(1)) << "sooner after trouble";
  health.Failed("two", kStart);
  EXPECT_TRUE(health.serving());
  health.Failed("three", kStart);
  EXPECT_FALSE(health.serving());
  EXPECT_EQ(health.reason(), "three");
  health.Worked(kStart);
  EXPECT_FALSE(health.serving()) << "what was under way still ended";
  for (int i = 0; i < 20; ++i) health.Failed("more", kStart);
  EXPECT_EQ(health.next_probe(), kStart + absl::Minutes(1)) << "less and less often";
  health.Passed(kStart);
  EXPECT_TRUE(health.serving());
  EXPECT_EQ(health.reason(), "");
}

TEST(DeviceHealthTest, FrequentDeathsMakeOneFailureSufficient) {
  DeviceHealth health(kOptions, kStart);
  health.Passed(kStart);
  SteadyTime now = kStart + absl::Seconds(1);
  for (int i = 0; i < 100; ++i) health.LostWorker(kA, now);
  EXPECT_FALSE(health.in_storm()) << "one tenant takes no device from others";
  health.LostWorker(kB, now);
  EXPECT_TRUE(health.in_storm());
  EXPECT_TRUE(health.serving());
  EXPECT_EQ(health.next_probe(), now);
  health.Failed("and it does not work", now);
  EXPECT_FALSE(health.serving());
}

TEST(DeviceHealthTest, OccasionalDeathsDoNotMarkUnhealthy) {
  DeviceHealth health(kOptions, kStart);
  health.Passed(kStart);
  for (int i = 0; i < 100; ++i)
    health.LostWorker(i % 2 == 0 ? kA : kB, kStart + i * absl::Seconds(15));
  EXPECT_FALSE(health.in_storm());
}

TEST(DeviceHealthTest, HardwareErrorMarksUnhealthyAtOnce) {
  DeviceHealth health(kOptions, kStart);
  health.Passed(kStart);
  health.Broke("XID 79", kStart);
  EXPECT_FALSE(health.serving());
  EXPECT_EQ(health.reason(), "XID 79");
}

TEST(DeviceHealthTest, UnmonitoredDeviceStaysHealthy) {
  DeviceHealth health({}, kStart);
  EXPECT_TRUE(health.known());
  for (int i = 0; i < 10; ++i) health.Failed("no", kStart);
  EXPECT_TRUE(health.serving());
  EXPECT_EQ(health.next_probe(), SteadyTime::InfiniteFuture());
}

// --- the engine ---

class HealthTest : public ::testing::TestWithParam<wire::DeviceDescription (*)(int, int64_t)> {
 protected:
  HealthTest() {
    EngineOptions options;
    options.health = {.interval = absl::Milliseconds(100),
                      .retry = absl::Milliseconds(10),
                      .longest_retry = absl::Milliseconds(50)};
    std::vector<wire::DeviceDescription> devices;
    for (int i = 0; i < 2; ++i) devices.push_back(GetParam()(i, int64_t{1} << 30));
    broker_ = std::make_unique<FakeBroker>(std::move(devices));
    engine_ = Engine::Create(options, broker_.get());
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    EXPECT_TRUE(engine_->sessions().Create(kA, request).ok());
    engine_->devices().AwaitHealth(Now() + absl::Seconds(100));
  }
  ~HealthTest() override { EXPECT_TRUE(EndEngine(*broker_, *engine_)); }

  std::string Name(int device) { return engine_->devices().List()[device].name(); }
  bool Serves(int device) {
    return engine_->devices().List()[device].state() == v1::Device::STATE_SERVING;
  }
  std::shared_ptr<OperationHandle> Fill(uint64_t handle, const std::string& device = "") {
    v1::Operation operation;
    auto* spec = operation.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_INT32);
    spec->add_shape(4);
    return Submit(operation, handle, device);
  }
  std::shared_ptr<OperationHandle> AddTo(uint64_t input, uint64_t handle) {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("negative");
    operation.mutable_ufunc()->add_inputs()->set_handle(input);
    return Submit(operation, handle, "");
  }
  std::shared_ptr<OperationHandle> Submit(v1::Operation operation, uint64_t handle,
                                          const std::string& device) {
    operation.add_outputs()->set_handle(handle);
    operation.set_device(device);
    auto ticket =
        engine_->operations().Submit(kA, "sessions/s", operation, SteadyTime::InfiniteFuture());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return *ticket;
  }
  static absl::Status Wait(const std::shared_ptr<OperationHandle>& ticket) {
    return ticket->Wait(Now() + absl::Seconds(100));
  }

  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(HealthTest, DeviceBecomesUnhealthyAndRecovers) {
  EXPECT_TRUE(Serves(0) && Serves(1));
  broker_->set_ill(0, true);
  ASSERT_TRUE(Eventually([&] { return !Serves(0); }));
  EXPECT_TRUE(Serves(1));
  EXPECT_THAT(engine_->devices().List()[0].state_reason(), HasSubstr("does not start"));
  for (uint64_t i = 1; i <= 10; ++i) {
    auto ticket = Fill(i);
    EXPECT_TRUE(Wait(ticket).ok());
    EXPECT_EQ(ticket->timeline().device(), Name(1));
  }
  absl::Status pinned = Wait(Fill(11, Name(0)));
  EXPECT_EQ(pinned.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(pinned), v1::ERROR_REASON_DEVICE_NOT_SERVING);
  broker_->set_ill(0, false);
  ASSERT_TRUE(Eventually([&] { return Serves(0); }));
  EXPECT_TRUE(Wait(Fill(12, Name(0))).ok());
}

TEST_P(HealthTest, WorkMovesFromDeviceWhoseWorkersDoNotStart) {
  ASSERT_TRUE(Serves(0));
  broker_->set_ill(0, true);
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (uint64_t i = 1; i <= 20; ++i) tickets.push_back(Fill(i));
  for (const auto& ticket : tickets) EXPECT_TRUE(Wait(ticket).ok());
}

TEST_P(HealthTest, QueuedWorkMovesOrFailsOnUnhealthyDevice) {
  broker_->set_hold(true);
  int before = broker_->num_workers();
  // The last one may wait for a shared packet, and then counts as not sent.
  constexpr uint64_t kQueue = 256, kSent = kQueue - 31;
  std::vector<std::shared_ptr<OperationHandle>> in_flight;
  for (uint64_t i = 1; i <= kQueue; ++i) in_flight.push_back(Fill(i, Name(0)));
  // The queue's worker, among those of canaries.
  std::shared_ptr<::stride::testing::FakeWorker> worker;
  ASSERT_TRUE(Eventually([&] {
    for (int i = before + 1; i <= broker_->num_workers() && worker == nullptr; ++i) {
      auto one = broker_->WaitForWorker(i);
      if (one->num_held() >= static_cast<int>(kSent)) worker = one;
    }
    return worker != nullptr;
  }));
  auto pinned = Fill(1000, Name(0));
  auto follows = AddTo(1, 1001);
  engine_->devices().ReportBroken(Name(0), "XID 79");
  EXPECT_FALSE(Serves(0));
  EXPECT_EQ(engine_->devices().List()[0].state_reason(), "XID 79");
  EXPECT_EQ(ReasonOf(Wait(pinned)), v1::ERROR_REASON_DEVICE_NOT_SERVING);
  broker_->set_hold(false);
  while (worker->EndNext()) {
  }
  for (size_t i = 0; i < in_flight.size(); ++i) {
    const absl::Status status = Wait(in_flight[i]);
    if (i < kSent) {
      EXPECT_TRUE(status.ok()) << status;
    } else if (!status.ok()) {
      EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DEVICE_NOT_SERVING) << status;
    }
  }
  EXPECT_TRUE(Wait(follows).ok());
  EXPECT_EQ(follows->timeline().device(), Name(1));
}

TEST_P(HealthTest, NoProbeRunsDuringWork) {
  for (uint64_t i = 1; i <= 2; ++i) EXPECT_TRUE(Wait(Fill(i, Name(i - 1))).ok());
  int before = broker_->num_workers();
  const SteadyTime end = Now() + absl::Milliseconds(600);
  uint64_t handle = 10;
  int pauses = 0;  // a busy machine suspended the test for so long that a device became idle
  for (SteadyTime last = Now(); last < end;) {
    for (int device : {0, 1}) EXPECT_TRUE(Wait(Fill(handle++, Name(device))).ok());
    const SteadyTime now = Now();
    if (now - last > absl::Milliseconds(50)) ++pauses;
    last = now;
  }
  EXPECT_LE(broker_->num_workers(), before + 2 * pauses);
  EXPECT_TRUE(Eventually([&] { return broker_->num_workers() >= before + 4; }))
      << "and then they come";
}

TEST_P(HealthTest, EngineRespondsWithUnhealthyDevice) {
  broker_->set_ill(0, true);
  EXPECT_TRUE(engine_->Responds(absl::Seconds(100)));
}

TEST(HealthProbeTest, EndlessProbeIsAFailure) {
  FakeBroker broker({HostDevice(0)});
  EngineOptions options;
  options.health = {.interval = absl::Milliseconds(50),
                    .timeout = absl::Milliseconds(50),
                    .retry = absl::Milliseconds(10),
                    .longest_retry = absl::Milliseconds(10)};
  auto engine = Engine::Create(options, &broker);
  engine->devices().AwaitHealth(Now() + absl::Seconds(100));
  auto serves = [&] { return engine->devices().List()[0].state() == v1::Device::STATE_SERVING; };
  EXPECT_TRUE(Eventually(serves));
  broker.set_hold(true);
  EXPECT_TRUE(Eventually([&] { return !serves(); }));
  EXPECT_THAT(engine->devices().List()[0].state_reason(), HasSubstr("its canary failed"));
  broker.set_hold(false);
  EXPECT_TRUE(Eventually(serves));
  broker.Shutdown();
}

INSTANTIATE_TEST_SUITE_P(Kinds, HealthTest, ::testing::Values(HostDevice, StagedDevice),
                         [](const auto& info) { return info.index == 0 ? "cpu" : "cuda"; });

}  // namespace
}  // namespace stride::engine
