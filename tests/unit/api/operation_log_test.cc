#include "server/api/operation_log.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "tests/support/fake_operations.h"

namespace stride::api {
namespace {

class OperationLogTest : public ::testing::Test {
 protected:
  std::shared_ptr<engine::OperationHandle> Submit() {
    v1::Operation operation;
    operation.mutable_copy()->mutable_input()->mutable_inline_array()->set_data("x");
    return *operations_.Submit({"default"}, "", operation, SteadyTime::InfiniteFuture());
  }

  stride::testing::FakeArrays arrays_;
  stride::testing::FakeOperations operations_{&arrays_};
  std::shared_ptr<OperationLog> log_ = OperationLog::Create();
};

TEST_F(OperationLogTest, WaitsOnlyForEarlierOperations) {
  log_->Accepted(*Submit());
  uint64_t before = log_->Mark();
  operations_.Hold();
  log_->Accepted(*Submit());
  EXPECT_TRUE(log_->WaitFor(before, Now()).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(log_->WaitFor(log_->Mark(), Now())));
  operations_.LetGo();
  EXPECT_TRUE(log_->WaitFor(log_->Mark(), SteadyTime::InfiniteFuture()).ok());
}

TEST_F(OperationLogTest, FirstErrorIsFirstInSubmissionOrder) {
  operations_.Hold();
  operations_.FailNextWork(absl::InternalError("one"));
  log_->Accepted(*Submit());
  log_->Refused(absl::InternalError("two"));
  operations_.LetGo();
  EXPECT_EQ(log_->WaitFor(log_->Mark(), SteadyTime::InfiniteFuture()).message(), "one");
}

TEST_F(OperationLogTest, LaterErrorIsNotReported) {
  log_->Accepted(*Submit());
  uint64_t first = log_->Mark();
  log_->Refused(absl::InternalError("two"));
  EXPECT_TRUE(log_->WaitFor(first, SteadyTime::InfiniteFuture()).ok());
}

TEST_F(OperationLogTest, ErrorIsReportedOnceByTheNextMark) {
  operations_.Hold();
  operations_.FailNextWork(absl::InternalError("one"));
  log_->Accepted(*Submit());
  uint64_t first = log_->Mark();
  log_->Refused(absl::InternalError("two"));
  log_->Refused(absl::InternalError("three"));
  uint64_t second = log_->Mark();
  operations_.LetGo();
  EXPECT_EQ(log_->WaitFor(first, SteadyTime::InfiniteFuture()).message(), "one");
  EXPECT_EQ(log_->WaitFor(second, SteadyTime::InfiniteFuture()).message(), "two");
  EXPECT_TRUE(log_->WaitFor(log_->Mark(), SteadyTime::InfiniteFuture()).ok());
}

// A ticket references arrays, and these pin memory.
TEST_F(OperationLogTest, LogReferencesNoTicket) {
  operations_.Hold();
  std::shared_ptr<engine::OperationHandle> handle = Submit();
  std::weak_ptr<engine::OperationHandle> weak = handle;
  log_->Accepted(*handle);
  handle.reset();
  EXPECT_TRUE(weak.expired());
  uint64_t before = log_->Mark();
  EXPECT_TRUE(absl::IsDeadlineExceeded(log_->WaitFor(before, Now())));
  operations_.LetGo();
  EXPECT_TRUE(log_->WaitFor(before, SteadyTime::InfiniteFuture()).ok());
}

}  // namespace
}  // namespace stride::api
