#include "server/api/status.h"

#include <string>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

google::rpc::ErrorInfo Info(const google::rpc::Status& details) {
  google::rpc::ErrorInfo info;
  int num_infos = 0;
  for (const auto& any : details.details()) num_infos += any.UnpackTo(&info) ? 1 : 0;
  EXPECT_EQ(num_infos, 1) << details.DebugString();
  return info;
}

TEST(StatusTest, OkIsConvertedToOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToRpcStatus(absl::OkStatus()).ByteSizeLong(), 0u);
}

struct PlainCase {
  absl::StatusCode code;
  grpc::StatusCode shown;
  const char* reason;
};

class PlainStatusTest : public ::testing::TestWithParam<PlainCase> {};

TEST_P(PlainStatusTest, HidesInternalText) {
  grpc::Status shown = ToGrpcStatus(absl::Status(GetParam().code, "reading /secret/path failed"));
  EXPECT_EQ(shown.error_code(), GetParam().shown);
  EXPECT_THAT(shown.error_message(), Not(HasSubstr("secret")));
  EXPECT_EQ(Info(Details(shown)).reason(), GetParam().reason);
  EXPECT_EQ(Info(Details(shown)).domain(), "stride.v1");
}

INSTANTIATE_TEST_SUITE_P(
    All, PlainStatusTest,
    ::testing::Values(
        PlainCase{absl::StatusCode::kInternal, grpc::StatusCode::INTERNAL, "INTERNAL"},
        PlainCase{absl::StatusCode::kUnknown, grpc::StatusCode::INTERNAL, "INTERNAL"},
        PlainCase{absl::StatusCode::kNotFound, grpc::StatusCode::INTERNAL, "INTERNAL"},
        PlainCase{absl::StatusCode::kUnavailable, grpc::StatusCode::INTERNAL, "INTERNAL"},
        PlainCase{absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED, "CANCELLED"},
        PlainCase{absl::StatusCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED,
                  "DEADLINE"}));

TEST(StatusTest, DetailsAreTransmittedWhole) {
  grpc::Status shown =
      ToGrpcStatus(InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "operation.matmul.left",
                                "shapes differ", {{"left", "(2,3)"}}));
  EXPECT_EQ(shown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(shown.error_message(), "shapes differ");
  google::rpc::Status details = Details(shown);
  EXPECT_EQ(details.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Info(details).metadata().at("left"), "(2,3)");
  google::rpc::BadRequest request;
  ASSERT_EQ(details.details_size(), 2);
  ASSERT_TRUE(details.details(1).UnpackTo(&request));
  EXPECT_EQ(request.field_violations(0).field(), "operation.matmul.left");
}

TEST(StatusTest, RetryDelayIsConverted) {
  absl::Status status = TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUEUE_FULL,
                                 "full", absl::Milliseconds(1500));
  EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(1500));
  EXPECT_LT(RetryDelayOf(absl::InternalError("x")), absl::ZeroDuration());
}

TEST(StatusTest, TrailersStayBelowTheLimitOfClients) {
  std::string log(100000, '\n');
  grpc::Status shown =
      ToGrpcStatus(InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "operation.kernel_launch.source",
                                log, {{"log", log}, {"entry", "add"}}));
  // Newlines take three bytes in the text; the details travel in base64.
  EXPECT_LT(shown.error_message().size() * 3 + shown.error_details().size() * 4 / 3, 7800u);
  EXPECT_GT(shown.error_message().size(), 900u);
  EXPECT_EQ(Info(Details(shown)).reason(), "COMPILE_FAILED");
  google::rpc::Status inside_a_message =
      ToRpcStatus(InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "x", std::string(10000, 'e')));
  EXPECT_EQ(inside_a_message.message().size(), 10000u);
}

TEST(StatusTest, TextIsTruncatedAtCharactersAndMadeUtf8) {
  EXPECT_EQ(CutText("plain", 100), "plain");
  EXPECT_EQ(CutText("a\xc3\xa4\xc3\xa4", 4), "a\xc3\xa4 [cut]");
  EXPECT_EQ(CutText("bad\xff\xfe", 100), "bad??");
  EXPECT_EQ(CutText("\xed\xa0\x80", 100), "???");  // a surrogate
  EXPECT_EQ(CutText("\xf0\x9f\x98\x80", 100), "\xf0\x9f\x98\x80");
  EXPECT_EQ(CutText("\xc3", 100), "?");  // cut short
}

}  // namespace
}  // namespace stride::api
