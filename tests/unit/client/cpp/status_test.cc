#include "client/cpp/src/status.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

namespace stride::internal {
namespace {

google::rpc::Status Rich() {
  google::rpc::Status status;
  status.set_code(3);
  status.set_message("Shapes do not fit");
  google::rpc::ErrorInfo info;
  info.set_reason("SHAPE_MISMATCH");
  (*info.mutable_metadata())["left"] = "3";
  status.add_details()->PackFrom(info);
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("operation.matmul.left");
  bad.mutable_field_violations(0)->set_description("3 against 4");
  status.add_details()->PackFrom(bad);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500000000);
  status.add_details()->PackFrom(retry);
  return status;
}

TEST(StatusTest, DetailsBecomeMembers) {
  const google::rpc::Status rich = Rich();
  const grpc::Status wire(grpc::StatusCode::INVALID_ARGUMENT, "Shapes do not fit",
                          rich.SerializeAsString());
  for (const Error& error : {ToError(rich), ToError(wire)}) {
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_EQ(error.reason, "SHAPE_MISMATCH");
    EXPECT_EQ(error.metadata.at("left"), "3");
    ASSERT_EQ(error.violations.size(), 1u);
    EXPECT_EQ(error.violations[0].field, "operation.matmul.left");
    EXPECT_EQ(error.retry_delay, std::chrono::milliseconds(1500));
    EXPECT_EQ(error.ToString(),
              "INVALID_ARGUMENT (SHAPE_MISMATCH): Shapes do not fit\n  operation.matmul.left: 3 "
              "against 4\n  retry in 1500 ms");
  }
}

TEST(StatusTest, MissingAndInvalidDetails) {
  const Error bare = ToError(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
  EXPECT_EQ(bare.code, Code::kUnavailable);
  EXPECT_EQ(bare.message, "gone");
  EXPECT_EQ(bare.reason, "");
  const Error broken = ToError(grpc::Status(grpc::StatusCode::INTERNAL, "odd", "\xff\xff\xff"));
  EXPECT_EQ(broken.code, Code::kInternal);
  EXPECT_EQ(broken.message, "odd");
}

}  // namespace
}  // namespace stride::internal
