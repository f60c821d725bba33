#include "server/identity/token.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"

namespace stride::identity {
namespace {

TEST(TokenTest, HashIsSha256) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(ToText(HashToken("abc")),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TokenTest, NewTokensAreUniqueAndLong) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    std::string token = NewToken();
    EXPECT_EQ(token.size(), 50u);
    EXPECT_GE(token.size(), kShortestToken);
    EXPECT_TRUE(std::all_of(token.begin(), token.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_' || c == '-';
    })) << token;
    EXPECT_TRUE(seen.insert(token).second);
  }
}

TEST(TokenTest, HashTextRoundTrips) {
  TokenHash hash = HashToken(NewToken());
  auto read = ParseTokenHash(ToText(hash));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(SameHash(*read, hash));
  hash[3] ^= 1;
  EXPECT_FALSE(SameHash(*read, hash));
}

TEST(TokenTest, InvalidHashIsRefused) {
  std::string good = ToText(HashToken("x"));
  EXPECT_TRUE(ParseTokenHash(good).has_value());
  for (const std::string& bad :
       {std::string(), std::string("sha256:"), good.substr(7), good + "0",
        good.substr(0, good.size() - 1), "sha512:" + good.substr(7),
        good.substr(0, good.size() - 1) + "g", good.substr(0, good.size() - 1) + "A"}) {
    EXPECT_FALSE(ParseTokenHash(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace stride::identity
