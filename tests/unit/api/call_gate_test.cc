#include "server/api/call_gate.h"

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

TEST(CallGateTest, BoundsEachTenantApart) {
  CallGate gate(2);
  EXPECT_TRUE(gate.Enter({"a"}).ok());
  EXPECT_TRUE(gate.Enter({"a"}).ok());
  absl::Status third = gate.Enter({"a"});
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(third), v1::ERROR_REASON_QUOTA);
  EXPECT_TRUE(third.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  EXPECT_TRUE(gate.Enter({"b"}).ok());
  gate.Leave({"a"});
  EXPECT_TRUE(gate.Enter({"a"}).ok());
  EXPECT_FALSE(gate.Enter({"a"}).ok());
}

}  // namespace
}  // namespace stride::api
