#include "server/ops/operation_view.h"

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::FieldOf;

TEST(ListLimitsTest, LongerListThanAnyOperationNeeds_IsRefused) {
  v1::Operation operation;
  for (int i = 0; i < 256; ++i) operation.mutable_view()->add_steps();
  EXPECT_TRUE(CheckLists(operation).ok());
  operation.mutable_view()->add_steps();
  absl::Status status = CheckLists(operation);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(MetadataOf(status, "limit"), "256");
  operation.Clear();
  for (int i = 0; i < 65; ++i) operation.add_outputs();
  EXPECT_FALSE(CheckLists(operation).ok());
}

TEST(ListLimitsTest, Error_NamesTheList) {
  v1::Operation ufunc, reduction, launch, member;
  for (int i = 0; i < 4097; ++i) ufunc.mutable_ufunc()->add_inputs();
  for (int i = 0; i < 65; ++i) reduction.mutable_reduction()->add_more_inputs();
  for (int i = 0; i < 4097; ++i) launch.mutable_kernel_launch()->add_globals();
  member.mutable_kernel_launch()->add_arguments();
  auto* aggregate = member.mutable_kernel_launch()->add_arguments()->mutable_aggregate();
  for (int i = 0; i < 4097; ++i) aggregate->add_members();
  EXPECT_EQ(FieldOf(CheckLists(ufunc)), "ufunc.inputs");
  EXPECT_EQ(FieldOf(CheckLists(reduction)), "reduction.more_inputs");
  EXPECT_EQ(FieldOf(CheckLists(launch)), "kernel_launch.globals");
  EXPECT_EQ(FieldOf(CheckLists(member)), "kernel_launch.arguments[1].aggregate.members");
}

}  // namespace
}  // namespace stride::ops
