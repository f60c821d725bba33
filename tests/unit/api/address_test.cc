#include "server/api/address.h"

#include "gtest/gtest.h"

namespace stride::api {
namespace {

struct GoodCase {
  const char* text;
  const char* printed;
  const char* target;
  bool local;
};

class GoodAddressTest : public ::testing::TestWithParam<GoodCase> {};

TEST_P(GoodAddressTest, GoodAddressIsParsed) {
  auto address = ParseAddress(GetParam().text);
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->ToString(), GetParam().printed);
  EXPECT_EQ(address->ToTarget(), GetParam().target);
  EXPECT_EQ(address->local(), GetParam().local);
}

INSTANTIATE_TEST_SUITE_P(
    All, GoodAddressTest,
    ::testing::Values(GoodCase{"unix:/run/s.sock", "unix:/run/s.sock", "unix:/run/s.sock", true},
                      GoodCase{"tcp:127.0.0.1:7433", "tcp:127.0.0.1:7433", "ipv4:127.0.0.1:7433",
                               true},
                      GoodCase{"tcp:localhost:0", "tcp:127.0.0.1:0", "ipv4:127.0.0.1:0", true},
                      GoodCase{"tcp:[::1]:80", "tcp:[::1]:80", "ipv6:[::1]:80", true},
                      GoodCase{"tcp:0.0.0.0:80", "tcp:0.0.0.0:80", "ipv4:0.0.0.0:80", false},
                      GoodCase{"tcp:[::]:80", "tcp:[::]:80", "ipv6:[::]:80", false},
                      GoodCase{"tcp:10.0.0.1:80", "tcp:10.0.0.1:80", "ipv4:10.0.0.1:80", false}));

class BadAddressTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BadAddressTest, BadAddressIsRefused) { EXPECT_FALSE(ParseAddress(GetParam()).ok()); }

INSTANTIATE_TEST_SUITE_P(All, BadAddressTest,
                         ::testing::Values("", "7433", "unix:", "unix:relative", "tcp:",
                                           "tcp:127.0.0.1", "tcp:127.0.0.1:", "tcp:127.0.0.1:65536",
                                           "tcp:127.0.0.1:-1", "tcp:example.org:80", "tcp:::1:80",
                                           "tcp:[127.0.0.1]:80", "http://x",
                                           "unix:/" + std::string(200, 'a')));

}  // namespace
}  // namespace stride::api
