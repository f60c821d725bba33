#include "server/api/operation_limits.h"

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

TEST(OperationLimitsTest, ListsThatNoOperationNeedsAreRefused) {
  v1::Operation operation;
  for (int i = 0; i < 256; ++i) operation.mutable_view()->add_steps();
  EXPECT_TRUE(CheckCounts(operation).ok());
  operation.mutable_view()->add_steps();
  absl::Status status = CheckCounts(operation);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(MetadataOf(status, "limit"), "256");
  operation.Clear();
  for (int i = 0; i < 65; ++i) operation.add_outputs();
  EXPECT_FALSE(CheckCounts(operation).ok());
}

}  // namespace
}  // namespace stride::api
