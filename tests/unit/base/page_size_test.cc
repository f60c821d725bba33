#include "server/base/page_size.h"

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace stride {
namespace {

TEST(PageSizeTest, ZeroIsTheDefault) { EXPECT_EQ(*PageSize(0), 100); }

TEST(PageSizeTest, RequestedSizeWithinLimitsIsUsed) {
  EXPECT_EQ(*PageSize(1), 1);
  EXPECT_EQ(*PageSize(1000), 1000);
}

TEST(PageSizeTest, NegativeSizeIsRefused) {
  for (int size : {-1, 1001}) {
    auto refused = PageSize(size);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(refused.status()), v1::ERROR_REASON_INVALID_FIELD);
  }
}

}  // namespace
}  // namespace stride
