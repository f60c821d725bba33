#include "server/api/byte_budget.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

TEST(ByteBudgetTest, TenantIsLimitedToHalf) {
  ByteBudget budget(1000);
  ByteBudget::Charge greedy(&budget, {"greedy"}), other(&budget, {"other"});
  EXPECT_TRUE(greedy.Set(500).ok());
  const absl::Status refused = greedy.Set(501);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(ReasonOf(refused), v1::ERROR_REASON_QUOTA);
  EXPECT_EQ(greedy.bytes(), 500);
  EXPECT_TRUE(other.Set(250).ok());
  EXPECT_FALSE(other.Set(251).ok());
  EXPECT_EQ(budget.used(), 750);
}

TEST(ByteBudgetTest, ChargesOfOneTenantAddUp) {
  ByteBudget budget(1000);
  ByteBudget::Charge first(&budget, {"a"}), second(&budget, {"a"});
  EXPECT_TRUE(first.Set(400).ok());
  EXPECT_FALSE(second.Set(200).ok());
  EXPECT_TRUE(first.Set(100).ok());
  EXPECT_TRUE(second.Set(200).ok());
}

TEST(ByteBudgetTest, EndOfCallRefundsEverything) {
  ByteBudget budget(1000);
  {
    ByteBudget::Charge charge(&budget, {"a"});
    EXPECT_TRUE(charge.Set(300).ok());
    ByteBudget::Charge moved = std::move(charge);
    EXPECT_EQ(budget.used(), 300);
    charge = ByteBudget::Charge(&budget, {"b"});
    EXPECT_TRUE(charge.Set(100).ok());
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(ByteBudgetTest, ManyGreedyTenantsLeaveAReserve) {
  ByteBudget budget(1024);
  std::vector<ByteBudget::Charge> charges;
  for (int i = 0; i < 3; ++i) {
    charges.emplace_back(&budget, TenantId{std::string(1, static_cast<char>('a' + i))});
    while (charges.back().Set(charges.back().bytes() + 1).ok()) {
    }
  }
  EXPECT_LE(budget.used(), 1024 * 7 / 8);
}

}  // namespace
}  // namespace stride::api
