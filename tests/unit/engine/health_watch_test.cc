#include "server/engine/scheduling/health_watch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::HostDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kInterval = absl::Seconds(60);

class HealthWatchTest : public PartTest {
 protected:
  HealthWatchTest() {
    EngineOptions options;
    options.health = {.interval = kInterval,
                      .retry = absl::Seconds(1),
                      .longest_retry = absl::Seconds(4),
                      .max_failures = 3};
    options.health_changed = [this](const std::string& device, bool serves, const std::string&) {
      changes_.push_back(device + (serves ? " serves" : " is ill"));
    };
    Start({HostDevice(0), HostDevice(1)}, std::move(options));
    watch_ = std::make_unique<HealthWatch>(
        core_.get(),
        HealthWatch::Hooks{
            .changed = [this](GlobalTransaction&, int device) { changed_.push_back(device); },
            .give_way = [this](GlobalTransaction&,
                               int) { return num_idle_ > 0 && num_idle_-- > 0; },
            .tried = [this](GlobalTransaction&, int device) { tried_.push_back(device); }});
  }
  void TearDown() override {
    broker_->Shutdown();
    watch_->Stop();
    PartTest::TearDown();
  }

  void StartWatch() {
    InAll([&](GlobalTransaction& transaction) { watch_->Start(transaction); });
    time_.RunAll();
    tried_.clear();
  }
  template <typename T>
  static std::vector<T> Take(std::vector<T>& list) {
    return std::exchange(list, {});
  }

  std::unique_ptr<HealthWatch> watch_;
  std::vector<std::string> changes_;
  std::vector<int> changed_, tried_;
  int num_idle_ = 0;  // workers that may give way
};

TEST_F(HealthWatchTest, FirstProbeMakesADeviceKnown) {
  EXPECT_FALSE(watch_->AllKnown());
  EXPECT_TRUE(watch_->Serves(0)) << "until something is known";
  InAll([&](GlobalTransaction& transaction) { watch_->Start(transaction); });
  time_.RunAll();
  EXPECT_TRUE(watch_->AllKnown());
  EXPECT_THAT(Take(tried_), ElementsAre(0, 1));
  EXPECT_THAT(changed_, IsEmpty());
}

TEST_F(HealthWatchTest, QuietDeviceIsTestedAgain) {
  StartWatch();
  time_.Advance(kInterval - absl::Seconds(1));
  EXPECT_THAT(tried_, IsEmpty());
  time_.Advance(absl::Seconds(1));
  EXPECT_THAT(Take(tried_), ElementsAre(0, 1));
}

TEST_F(HealthWatchTest, WorkIsAsGoodAsAProbe) {
  StartWatch();
  for (int i = 0; i < 8; ++i) {
    time_.Advance(kInterval / 4);
    In("t", [&](TenantTransaction& transaction) { watch_->Worked(transaction, 0); });
  }
  EXPECT_THAT(Take(tried_), ElementsAre(1, 1)) << "the other device has no work";
}

TEST_F(HealthWatchTest, FailuresMakeADeviceIllUntilAProbePasses) {
  StartWatch();
  broker_->set_ill(0, true);
  InAll([&](GlobalTransaction& transaction) { watch_->Suspect(transaction, 0); });
  time_.RunAll();
  EXPECT_TRUE(watch_->Serves(0)) << "one failure";
  time_.Advance(absl::Seconds(1));
  EXPECT_TRUE(watch_->Serves(0)) << "two failures";
  time_.Advance(absl::Seconds(2));
  EXPECT_FALSE(watch_->Serves(0));
  EXPECT_TRUE(watch_->Serves(1));
  EXPECT_THAT(Take(changed_), ElementsAre(0));
  EXPECT_THAT(watch_->of(0).reason(), HasSubstr("does not start"));
  broker_->set_ill(0, false);
  time_.Advance(absl::Seconds(4));
  EXPECT_TRUE(watch_->Serves(0));
  EXPECT_THAT(Take(changed_), ElementsAre(0));
  EXPECT_THAT(changes_, ElementsAre("devices/cpu:0 is ill", "devices/cpu:0 serves"));
}

// Tenants' idle workers may have what the probe lacks.
TEST_F(HealthWatchTest, ProbeWithoutRoomIsNoEvidenceWhileWorkersAreIdle) {
  StartWatch();
  broker_->set_ill(0, true);
  num_idle_ = 100;
  InAll([&](GlobalTransaction& transaction) { watch_->Suspect(transaction, 0); });
  time_.RunAll();
  EXPECT_EQ(num_idle_, 99);
  time_.Advance(absl::Seconds(1));
  EXPECT_EQ(num_idle_, 97) << "more each time";
  time_.Advance(absl::Seconds(1));
  EXPECT_EQ(num_idle_, 93);
  EXPECT_TRUE(watch_->Serves(0));
}

TEST_F(HealthWatchTest, LackOfResourcesIsNoEvidence) {
  StartWatch();
  broker_->set_most_workers(0, absl::ResourceExhaustedError("out of memory"));
  InAll([&](GlobalTransaction& transaction) { watch_->Suspect(transaction, 0); });
  time_.Advance(absl::Seconds(30));
  EXPECT_TRUE(watch_->Serves(0));
  EXPECT_THAT(changed_, IsEmpty());
}

TEST_F(HealthWatchTest, HardwareErrorMakesADeviceIllAtOnce) {
  StartWatch();
  InAll([&](GlobalTransaction& transaction) { watch_->Broke(transaction, 1, "XID 79"); });
  EXPECT_FALSE(watch_->Serves(1));
  EXPECT_EQ(watch_->of(1).reason(), "XID 79");
  EXPECT_THAT(Take(changed_), ElementsAre(1));
}

// Deaths of one tenant's workers are its own affair.
TEST_F(HealthWatchTest, DeathsOfSeveralTenantsRequestAProbe) {
  StartWatch();
  auto lose = [&](const std::string& tenant) {
    InAll([&](GlobalTransaction& transaction) {
      watch_->LostWorker(transaction, 0, TenantId{tenant});
    });
  };
  for (int i = 0; i < 10; ++i) lose("a");
  time_.RunAll();
  EXPECT_THAT(tried_, IsEmpty());
  lose("b");
  time_.RunAll();
  EXPECT_THAT(Take(tried_), ElementsAre(0));
  EXPECT_TRUE(watch_->Serves(0)) << "it passed";
}

}  // namespace
}  // namespace stride::engine
