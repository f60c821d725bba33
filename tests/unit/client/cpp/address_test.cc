#include "client/cpp/src/address.h"

#include <gtest/gtest.h>

#include "stride/client.h"

namespace stride::internal {
namespace {

TEST(AddressTest, AcceptsDaemonAddressesAndShortForms) {
  const std::pair<const char*, const char*> rows[] = {
      {"unix:/run/stride/stride.sock", "unix:/run/stride/stride.sock"},
      {"unix:///run/s", "unix:///run/s"},
      {"tcp:127.0.0.1:7433", "127.0.0.1:7433"},
      {"tcp:[::1]:7433", "[::1]:7433"},
      {"tcp:gpu-3.lab:1", "gpu-3.lab:1"},
      {"localhost:65535", "localhost:65535"},
      {"[fe80::1]:7433", "[fe80::1]:7433"},
  };
  for (const auto& [given, wanted] : rows) {
    const auto target = TargetOf(given);
    ASSERT_TRUE(target.ok()) << given << ": " << target.error().ToString();
    EXPECT_EQ(*target, wanted);
  }
}

TEST(AddressTest, InvalidAddressIsRefusedWithText) {
  const std::pair<const char*, const char*> rows[] = {
      {"unix:", "path of the Unix socket is missing"},
      {"localhost", "port is missing"},
      {"tcp:localhost", "port is missing"},
      {"[::1]", "port is missing"},
      {"::1:7433", "Not a host"},
      {"", "port is missing"},
      {":7433", "Not a host"},
      {"localhost:", "port must be"},
      {"localhost:0", "port must be"},
      {"localhost:65536", "port must be"},
      {"localhost:7433x", "port must be"},
      {"http://localhost:7433", "Not a host"},
      {"dns:///localhost:7433", "Not a host"},
      {"tcp:tcp:localhost:7433", "Not a host"},
      {"local host:7433", "Not a host"},
  };
  for (const auto& [given, why] : rows) {
    const auto target = TargetOf(given);
    ASSERT_FALSE(target.ok()) << given;
    EXPECT_EQ(target.error().code, Code::kInvalidArgument);
    EXPECT_NE(target.error().message.find(why), std::string::npos) << target.error().message;
    EXPECT_NE(target.error().message.find(std::string("not: ") + given), std::string::npos);
  }
  const auto client = Client::Connect({.address = "http://localhost:7433"});
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace stride::internal
