#include "server/api/reset_budget.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/steady_time.h"

namespace stride::api {
namespace {

constexpr uint64_t kBurst = 700;
constexpr auto kPerSecond = static_cast<uint64_t>(ResetBudget::kPerSecond);
const SteadyTime kStart = SteadyTime() + absl::Hours(1);

TEST(ResetBudgetTest, BurstIsAllowedAndMoreIsRefused) {
  ResetBudget budget;
  budget.set_burst(kBurst);
  for (uint64_t i = 0; i < kBurst; ++i) ASSERT_TRUE(budget.Take("a", 1, kStart)) << i;
  EXPECT_FALSE(budget.Take("a", 1, kStart));
  EXPECT_TRUE(budget.Take("b", kBurst, kStart)) << "another peer";
  EXPECT_FALSE(budget.Take("c", kBurst + 1, kStart)) << "at once";
}

TEST(ResetBudgetTest, BudgetRefillsOverTime) {
  ResetBudget budget;
  budget.set_burst(kBurst);
  ASSERT_TRUE(budget.Take("a", kBurst, kStart));
  EXPECT_TRUE(budget.Take("a", kPerSecond, kStart + absl::Seconds(1)));
  EXPECT_FALSE(budget.Take("a", 1, kStart + absl::Seconds(1)));
  EXPECT_FALSE(budget.Take("a", kBurst + 1, kStart + absl::Hours(1))) << "never more than a burst";
  EXPECT_TRUE(budget.Take("a", kBurst, kStart + absl::Hours(1)));
}

TEST(ResetBudgetTest, IdlePeersAreForgotten) {
  ResetBudget budget;
  budget.set_burst(kBurst);
  for (int i = 0; i < 100; ++i) budget.Take(absl::StrCat(i), 1, kStart);
  EXPECT_EQ(budget.num_peers(), 100u);
  budget.Take("a", 1, kStart + absl::Minutes(1));
  EXPECT_EQ(budget.num_peers(), 1u);
}

}  // namespace
}  // namespace stride::api
