// ComputeService.Run through a real server.

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::DetailsOf;
using stride::testing::TestServer;

v1::RunRequest Copy(const std::string& bytes) {
  v1::RunRequest request;
  auto* array =
      request.mutable_operation()->mutable_copy()->mutable_input()->mutable_inline_array();
  array->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  array->mutable_spec()->add_shape(static_cast<int64_t>(bytes.size()));
  array->set_data(bytes);
  request.mutable_operation()->add_outputs()->set_inline_result(true);
  return request;
}

class RunTest : public ::testing::Test {
 protected:
  TestServer server_;
  std::unique_ptr<v1::ComputeService::Stub> stub_ = v1::ComputeService::NewStub(server_.Connect());
};

TEST_F(RunTest, OneRoundTrip) {
  grpc::ClientContext context;
  v1::RunResponse response;
  ASSERT_TRUE(stub_->Run(&context, Copy("hello"), &response).ok());
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).inline_array().data(), "hello");
  EXPECT_EQ(response.timeline().device(), "devices/cpu:0");
}

TEST_F(RunTest, ErrorsCarryThePathFromTheRequest) {
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, v1::RunRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).field(), "operation.kind");
}

TEST_F(RunTest, AFullQueueSaysWhenToComeBack) {
  server_.engine().FailNextSubmit(TryLater(absl::StatusCode::kResourceExhausted,
                                           v1::ERROR_REASON_QUEUE_FULL, "full",
                                           absl::Milliseconds(250)));
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, Copy("x"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  ASSERT_EQ(trailers.count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(trailers.find("grpc-retry-pushback-ms")->second, "250");
}

TEST_F(RunTest, FailedWorkIsTheCallsError) {
  server_.engine().FailNextWork(MakeError(absl::StatusCode::kFailedPrecondition,
                                          v1::ERROR_REASON_KERNEL_FAULT, "illegal address"));
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, Copy("x"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailsOf(status).info.reason(), "KERNEL_FAULT");
}

// A deadline of the work itself is not taken for the end of a wait.
TEST_F(RunTest, WorkThatFailedByItsDeadlineIsToldAtOnce) {
  server_.engine().FailNextWork(
      MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, "too slow"));
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, Copy("x"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "too slow");
}

TEST_F(RunTest, ACallThatIsCancelledCancelsItsWork) {
  server_.engine().Hold();
  grpc::ClientContext context;
  std::thread canceller([&] {
    while (server_.engine().num_submitted() == 0) absl::SleepFor(absl::Milliseconds(1));
    context.TryCancel();
  });
  v1::RunResponse response;
  EXPECT_EQ(stub_->Run(&context, Copy("x"), &response).error_code(), grpc::StatusCode::CANCELLED);
  canceller.join();
  while (server_.engine().num_cancelled() == 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(RunTest, ADeadlineCancelsTheWork) {
  server_.engine().Hold();
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(100)));
  v1::RunResponse response;
  EXPECT_EQ(stub_->Run(&context, Copy("x"), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  while (server_.engine().num_cancelled() == 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(RunTest, AResultTooLargeForItsMessageIsRefusedBeforeItRuns) {
  server_.engine().Hold();
  v1::RunRequest request;
  request.mutable_operation()->mutable_creation()->mutable_fill()->mutable_spec()->add_shape(5
                                                                                             << 20);
  request.mutable_operation()->add_outputs()->set_inline_result(true);
  grpc::ClientContext context;
  v1::RunResponse response;
  grpc::Status status = stub_->Run(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).info.reason(), "SIZE_LIMIT");
  EXPECT_EQ(server_.engine().num_cancelled(), 1);
}

}  // namespace
}  // namespace stride::api
