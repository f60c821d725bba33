#include "server/api/call_gate.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

TEST(CallGateTest, BoundsEachTenantSeparately) {
  CallGate gate(2, 100);
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

TEST(CallGateTest, BoundsAllTenantsTogether) {
  CallGate gate(2, 3);
  EXPECT_TRUE(gate.Enter({"a"}).ok());
  EXPECT_TRUE(gate.Enter({"a"}).ok());
  EXPECT_TRUE(gate.Enter({"b"}).ok());
  absl::Status fourth = gate.Enter({"c"});
  EXPECT_EQ(fourth.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(fourth), v1::ERROR_REASON_QUOTA);
  EXPECT_THAT(std::string(fourth.message()), ::testing::HasSubstr("all tenants together is 3"));
  gate.Leave({"a"});
  EXPECT_TRUE(gate.Enter({"c"}).ok());
}

}  // namespace
}  // namespace stride::api
