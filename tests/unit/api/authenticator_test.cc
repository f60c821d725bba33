#include "server/api/authenticator.h"

#include "gtest/gtest.h"

namespace stride::api {
namespace {

TEST(PeerTest, AddressOmitsThePort) {
  EXPECT_EQ(AddressOfPeer("ipv4:10.0.0.7:51234"), "ipv4:10.0.0.7");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B2001:db8::1%5D:51234"), "ipv6:[2001:db8::1]");
  EXPECT_EQ(AddressOfPeer("ipv6:[2001:db8::1]:51234"), "ipv6:[2001:db8::1]");
  EXPECT_EQ(AddressOfPeer("unix:"), "unix");
  EXPECT_EQ(AddressOfPeer("unix:/run/x:y"), "unix");
  EXPECT_EQ(AddressOfPeer(""), "");
}

TEST(PeerTest, OnlyThisMachineIsLocal) {
  for (const char* peer : {"unix:", "unix:/tmp/x", "ipv4:127.0.0.1:1", "ipv4:127.9.0.1:1",
                           "ipv6:%5B::1%5D:80", "ipv6:[::1]:80", "ipv6:[::ffff:127.0.0.1]:80"})
    EXPECT_TRUE(IsLocalPeer(peer)) << peer;
  for (const char* peer : {"ipv4:10.0.0.7:1", "ipv4:12.7.0.0:1", "ipv6:%5B::12%5D:80",
                           "ipv6:[2001:db8::1]:1", "", "ipv4:1.127.0.1:1", "dns:localhost:1"})
    EXPECT_FALSE(IsLocalPeer(peer)) << peer;
}

}  // namespace
}  // namespace stride::api
