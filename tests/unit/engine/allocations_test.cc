// Heap allocations of a small operation on its way through the engine.
#include <deque>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/engine/engine.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "tests/support/await.h"
#include "tests/support/count_allocations.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::Allocations;
using ::stride::testing::CountAllocations;

const TenantId kTenant{"default"};
constexpr char kSession[] = "sessions/s";
constexpr uint64_t kFirst = 1;

class AllocationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    broker_.set_hold(true);
    engine_ = Engine::Create({}, &broker_);
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    ASSERT_TRUE(engine_->sessions().Create(kTenant, request).ok());
    v1::PutArrayRequest::Header header;
    header.set_parent(kSession);
    header.set_array_id(absl::StrCat(kFirst));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
    header.mutable_spec()->add_shape(4);
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Now() + absl::Seconds(100));
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->Write(std::string(16, '\0')).ok());
    ASSERT_TRUE((*upload)->Finish().ok());
  }
  void TearDown() override {
    EXPECT_TRUE(EndEngine(broker_, *engine_));
    engine_.reset();
  }

  // Extends a chain: reads the previous result, which no other operation reads.
  void Go(SteadyTime deadline = SteadyTime::InfiniteFuture()) {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("add");
    operation.mutable_ufunc()->add_inputs()->set_handle(last_);
    operation.mutable_ufunc()->add_inputs()->set_handle(last_);
    operation.add_outputs()->set_handle(last_ + 1);
    v1::Release release;
    release.add_handles(last_++);
    const std::string session = kSession;
    CountAllocations count(true);
    auto ticket = engine_->operations().Submit(kTenant, session, operation, deadline);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    (*ticket)->OnDone([this](const absl::Status& status) { num_ended_ += status.ok(); });
    ASSERT_TRUE(engine_->operations().Release(kTenant, session, release).ok());
  }

  // Submits thousands of operations with hundreds in flight; `deadline` is called for each.
  void ExpectNothingTaken(const std::function<SteadyTime()>& deadline) {
    constexpr int kInFlight = 300, kWarm = 5000, kMeasured = 5000;
    Go();
    std::shared_ptr<::stride::testing::FakeWorker> worker = broker_.WaitForWorker(1);
    AWAIT(worker->num_held() != 0);
    for (int i = 0; i < kInFlight; ++i) Go(deadline());
    int64_t before = 0;
    for (int i = 0; i < kWarm + kMeasured; ++i) {
      if (i == kWarm) before = Allocations::count;
      Go(deadline());
      CountAllocations count(true);
      ASSERT_TRUE(worker->EndNext());
    }
    // Hash tables grow now and then.
    EXPECT_LT(Allocations::count - before, kMeasured / 50);
    while (worker->EndNext()) {
    }
    EXPECT_EQ(num_ended_, 1 + kInFlight + kWarm + kMeasured);
  }

  ::stride::testing::FakeBroker broker_{{::stride::testing::HostDevice(0)}};
  std::unique_ptr<Engine> engine_;
  uint64_t last_ = kFirst;
  int num_ended_ = 0;
};

TEST_F(AllocationsTest, SteadyStateOperationDoesNotAllocate) {
  if (!BlockPool::kPools) GTEST_SKIP() << "blocks are not pooled under a sanitizer";
  ExpectNothingTaken([] { return SteadyTime::InfiniteFuture(); });
}

// Each deadline is earlier than the previous one. Its record is freed with the operation.
TEST_F(AllocationsTest, SteadyStateDeadlineDoesNotAllocate) {
  if (!BlockPool::kPools) GTEST_SKIP() << "blocks are not pooled under a sanitizer";
  SteadyTime next = Now() + absl::Hours(10);
  ExpectNothingTaken([&] { return next -= absl::Seconds(1); });
}

}  // namespace
}  // namespace stride::engine
