#include "server/transfer/bulk_gate.h"

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::transfer {
namespace {

TEST(BulkGateTest, RefusesBeyondTheLimitAndFreesWithTheLease) {
  BulkGate gate(2);
  auto first = gate.Enter();
  auto second = gate.Enter();
  ASSERT_TRUE(first.ok() && second.ok());
  absl::Status third = gate.Enter().status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(third), v1::ERROR_REASON_QUOTA);
  EXPECT_TRUE(third.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  EXPECT_EQ(gate.num_streams(), 2);
  first->reset();
  EXPECT_EQ(gate.num_streams(), 1);
  EXPECT_TRUE(gate.Enter().ok());
  EXPECT_EQ(gate.stats().refused, 1);
}

}  // namespace
}  // namespace stride::transfer
