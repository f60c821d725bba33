#include "server/transfer/bulk_gate.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::transfer {
namespace {

TEST(BulkGateTest, RefusesBeyondTheLimitAndFreesWithTheLease) {
  BulkGate gate(4);
  auto first = gate.Enter({"a"});
  auto second = gate.Enter({"a"});
  ASSERT_TRUE(first.ok() && second.ok());
  absl::Status third = gate.Enter({"a"}).status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(third), v1::ERROR_REASON_QUOTA);
  EXPECT_TRUE(third.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  EXPECT_EQ(gate.num_streams(), 2);
  first->reset();
  EXPECT_EQ(gate.num_streams(), 1);
  EXPECT_TRUE(gate.Enter({"a"}).ok());
  EXPECT_EQ(gate.stats().refused, 1);
}

TEST(BulkGateTest, OneTenantIsLimitedToHalf) {
  BulkGate gate(4);
  std::vector<std::shared_ptr<const void>> leases;
  for (const char* tenant : {"a", "a", "b", "b"}) {
    auto lease = gate.Enter({tenant});
    ASSERT_TRUE(lease.ok()) << lease.status();
    leases.push_back(*std::move(lease));
  }
  EXPECT_FALSE(gate.Enter({"a"}).ok());
  EXPECT_FALSE(gate.Enter({"c"}).ok());
  leases.pop_back();
  EXPECT_FALSE(gate.Enter({"a"}).ok());
  EXPECT_TRUE(gate.Enter({"c"}).ok());
  EXPECT_EQ(BulkGate(1).Enter({"a"}).status(), absl::OkStatus());
}

}  // namespace
}  // namespace stride::transfer
