#include "client/cli/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace stride::cli {
namespace {

TEST(SuggestTest, SuggestsOnlyNearWords) {
  const std::vector<std::string> names = {"devices", "top",    "put",    "get",
                                          "ufunc",   "reduce", "kernel", "doctor"};
  EXPECT_EQ(Suggest("device", names), "devices");
  EXPECT_EQ(Suggest("kernle", names), "kernel");
  EXPECT_EQ(Suggest("ufnuc", names), "ufunc");
  EXPECT_EQ(Suggest("redcue", names), "reduce");
  EXPECT_EQ(Suggest("pt", names), "put");
  EXPECT_EQ(Suggest("banana", names), "");
  EXPECT_EQ(Suggest("", names), "");
  EXPECT_EQ(Suggest(std::string(10000, 'a'), names), "");
}

}  // namespace
}  // namespace stride::cli
