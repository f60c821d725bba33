#include "server/main/notifier.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "server/base/unique_fd.h"

namespace stride {
namespace {

std::string Take(const char* name) {
  const char* value = std::getenv(name);
  std::string copy = value == nullptr ? "" : value;
  unsetenv(name);
  return copy;
}

}  // namespace

Notifier Notifier::FromEnvironment() {
  Notifier notifier;
  notifier.socket_ = Take("NOTIFY_SOCKET");
  std::string micros = Take("WATCHDOG_USEC");
  std::string pid = Take("WATCHDOG_PID");
  int64_t value = 0;
  bool ours = pid.empty() || pid == std::to_string(getpid());
  if (ours && absl::SimpleAtoi(micros, &value) && value > 0)
    notifier.watchdog_ = absl::Microseconds(value);
  return notifier;
}

void Notifier::Notify(std::string_view text) const {
  sockaddr_un name{};
  if (socket_.empty() || socket_.size() >= sizeof(name.sun_path)) return;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, socket_.data(), socket_.size());
  // An abstract name is written with @ and begins with a zero byte.
  if (name.sun_path[0] == '@') name.sun_path[0] = '\0';
  socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&name),
         size);
}

}  // namespace stride
