#include "server/main/suggestion.h"

#include "gtest/gtest.h"

namespace stride {
namespace {

TEST(SuggestionTest, FindsTheNearestWord) {
  std::vector<std::string> words = {"listen", "log-level", "log-format", "max-connections"};
  EXPECT_EQ(Suggest("lisen", words), "listen");
  EXPECT_EQ(Suggest("loglevel", words), "log-level");
  EXPECT_EQ(Suggest("max-conections", words), "max-connections");
  EXPECT_EQ(Suggest("zebra", words), "");
  EXPECT_EQ(Suggest("", {}), "");
}

}  // namespace
}  // namespace stride
