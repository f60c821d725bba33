#include "server/api/operation_limits.h"

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"

namespace stride::api {
namespace {

using ops::testing::FieldOf;

TEST(OperationLimitsTest, OverlongListsAreRefused) {
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

TEST(OperationLimitsTest, ErrorNamesTheList) {
  v1::Operation ufunc, reduction, launch, member;
  for (int i = 0; i < 4097; ++i) ufunc.mutable_ufunc()->add_inputs();
  for (int i = 0; i < 65; ++i) reduction.mutable_reduction()->add_more_inputs();
  for (int i = 0; i < 4097; ++i) launch.mutable_kernel_launch()->add_globals();
  member.mutable_kernel_launch()->add_arguments();
  auto* aggregate = member.mutable_kernel_launch()->add_arguments()->mutable_aggregate();
  for (int i = 0; i < 4097; ++i) aggregate->add_members();
  EXPECT_EQ(FieldOf(CheckCounts(ufunc)), "ufunc.inputs");
  EXPECT_EQ(FieldOf(CheckCounts(reduction)), "reduction.more_inputs");
  EXPECT_EQ(FieldOf(CheckCounts(launch)), "kernel_launch.globals");
  EXPECT_EQ(FieldOf(CheckCounts(member)), "kernel_launch.arguments[1].aggregate.members");
}

}  // namespace
}  // namespace stride::api
