#include "server/main/notifier.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "server/base/unique_fd.h"

namespace stride {
namespace {

TEST(NotifierTest, SendsToAbstractSocketAndHidesItFromChildren) {
  std::string name = "stride-notify-test-" + std::to_string(getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  UniqueFd receiver(socket(AF_UNIX, SOCK_DGRAM, 0));
  ASSERT_EQ(bind(receiver.get(), reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  Notifier notifier = Notifier::FromEnvironment();
  EXPECT_EQ(notifier.watchdog(), absl::Seconds(30));
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  notifier.Notify("READY=1");
  char text[64];
  ssize_t size = recv(receiver.get(), text, sizeof(text), 0);
  EXPECT_EQ(std::string(text, size), "READY=1");
}

TEST(NotifierTest, WatchdogOfAnotherProcessIsIgnored) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  Notifier notifier = Notifier::FromEnvironment();
  EXPECT_EQ(notifier.watchdog(), absl::InfiniteDuration());
  notifier.Notify("READY=1");  // no receiver
}

}  // namespace
}  // namespace stride
