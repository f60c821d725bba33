// ComputeService.Run through a real server.

#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "tests/support/await.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::CopyOf;
using stride::testing::DetailsOf;
using stride::testing::TestServer;

class RunTest : public ::testing::Test {
 protected:
  TestServer server_;
  std::unique_ptr<v1::ComputeService::Stub> stub_ = v1::ComputeService::NewStub(server_.Connect());
};

TEST_F(RunTest, RunTakesOneRoundTrip) {
  grpc::ClientContext context;
  v1::RunResponse response;
  ASSERT_TRUE(stub_->Run(&context, CopyOf("hello"), &response).ok());
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).inline_array().data(), "hello");
  EXPECT_EQ(response.timeline().device(), "devices/cpu:0");
}

TEST_F(RunTest, RunWaitsForItsResult) {
  server_.engine().operations().SetReadsAtOnce(false);
  grpc::ClientContext context;
  v1::RunResponse response;
  ASSERT_TRUE(stub_->Run(&context, CopyOf("hello"), &response).ok());
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).inline_array().data(), "hello");
  EXPECT_EQ(response.results(0).array().state(), v1::Array::STATE_READY);
}

TEST_F(RunTest, TenantOverItsUploadRateWaits) {
  identity::Quota quota;
  quota.upload_bytes_per_second = 1000;
  server_.engine().accounts().SetQuotas({}, quota);
  server_.engine().accounts().AddUpload({"default"}, 1100);
  const absl::Duration delay = server_.engine().accounts().UploadDelay({"default"});
  ASSERT_GT(delay, absl::Milliseconds(20));
  const SteadyTime start = Now();
  grpc::ClientContext context;
  v1::RunResponse response;
  ASSERT_TRUE(stub_->Run(&context, CopyOf("hello"), &response).ok());
  EXPECT_GE(Now() - start, delay - absl::Milliseconds(5));
}

TEST_F(RunTest, ErrorsContainTheFieldPath) {
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, v1::RunRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).field(), "operation.kind");
}

TEST_F(RunTest, FullQueueReportsRetryDelay) {
  server_.engine().operations().FailNextSubmit(TryLater(absl::StatusCode::kResourceExhausted,
                                                        v1::ERROR_REASON_QUEUE_FULL, "full",
                                                        absl::Milliseconds(250)));
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, CopyOf("x"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  ASSERT_EQ(trailers.count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(trailers.find("grpc-retry-pushback-ms")->second, "250");
}

TEST_F(RunTest, FailedWorkFailsTheCall) {
  server_.engine().operations().FailNextWork(MakeError(
      absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT, "illegal address"));
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, CopyOf("x"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailsOf(status).info.reason(), "KERNEL_FAULT");
}

// A deadline of the work itself is not taken for the end of a wait.
TEST_F(RunTest, ExpiredWorkFailsTheCallAtOnce) {
  server_.engine().operations().FailNextWork(
      MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, "too slow"));
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, CopyOf("x"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "too slow");
}

TEST_F(RunTest, CancelledCallCancelsItsWork) {
  server_.engine().operations().Hold();
  grpc::ClientContext context;
  std::thread canceller([&] {
    AWAIT(server_.engine().operations().num_submitted() != 0);
    context.TryCancel();
  });
  v1::RunResponse response;
  EXPECT_EQ(stub_->Run(&context, CopyOf("x"), &response).error_code(), grpc::StatusCode::CANCELLED);
  canceller.join();
  AWAIT(server_.engine().operations().num_cancelled() != 0);
}

TEST_F(RunTest, DeadlineCancelsTheWork) {
  server_.engine().operations().Hold();
  // A busy machine may use up a short deadline before the call arrives: a longer one is tried then.
  for (auto timeout = std::chrono::milliseconds(100);
       server_.engine().operations().num_submitted() == 0; timeout *= 4) {
    ASSERT_LT(timeout, ::stride::testing::kAwaitLimit);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    v1::RunResponse response;
    ASSERT_EQ(stub_->Run(&context, CopyOf("x"), &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  AWAIT(server_.engine().operations().num_cancelled() != 0);
}

TEST_F(RunTest, OversizedResultIsRefusedBeforeItRuns) {
  server_.engine().operations().Hold();
  v1::RunRequest request;
  request.mutable_operation()->mutable_creation()->mutable_fill()->mutable_spec()->add_shape(5
                                                                                             << 20);
  request.mutable_operation()->add_outputs()->set_inline_result(true);
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).info.reason(), "SIZE_LIMIT");
  EXPECT_EQ(server_.engine().operations().num_cancelled(), 1);
}

// Calls in flight, without a thread per call on the client either.
class ManyRuns {
 public:
  void Add(v1::ComputeService::Stub& stub, const v1::RunRequest& request) {
    auto& call = *calls_.emplace_back(std::make_unique<One>());
    call.reader = stub.AsyncRun(&call.context, request, &queue_);
    call.reader->Finish(&call.response, &call.status, &call);
  }
  // Returns how many of the calls added ended with `code`.
  int Await(grpc::StatusCode code) {
    int count = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      void* tag;
      bool ok;
      if (!queue_.Next(&tag, &ok)) break;
      if (static_cast<One*>(tag)->status.error_code() == code) ++count;
    }
    return count;
  }

 private:
  struct One {
    grpc::ClientContext context;
    v1::RunResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::RunResponse>> reader;
  };
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<One>> calls_;
};

int NumThreads() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    count += entry.exists() ? 1 : 0;
  return count;
}

TEST_F(RunTest, CallsInFlightOccupyNoThreads) {
  constexpr int kCalls = 200, kMoreThreads = 40;
  server_.engine().operations().Hold();
  const int before = NumThreads();
  ManyRuns runs;
  for (int i = 0; i < kCalls; ++i) runs.Add(*stub_, CopyOf("x"));
  AWAIT(server_.engine().operations().num_submitted() >= kCalls);
  EXPECT_LE(NumThreads(), before + kMoreThreads);
  server_.engine().operations().LetGo();
  EXPECT_EQ(runs.Await(grpc::StatusCode::OK), kCalls);
}

TEST_F(RunTest, ShutdownEndsCallsInFlight) {
  constexpr int kCalls = 20;
  server_.engine().operations().Hold();
  ManyRuns runs;
  for (int i = 0; i < kCalls; ++i) runs.Add(*stub_, CopyOf("x"));
  AWAIT(server_.engine().operations().num_submitted() >= kCalls);
  server_.front().Stop(Now() + absl::Milliseconds(50));
  EXPECT_EQ(server_.engine().operations().num_cancelled(), kCalls);
  EXPECT_EQ(runs.Await(grpc::StatusCode::OK), 0);
}

}  // namespace
}  // namespace stride::api
