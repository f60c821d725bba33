#include "server/broker/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "server/base/system_error.h"

namespace stride::broker {

absl::StatusOr<Wakeup> Wakeup::Create() {
  Wakeup wakeup;
  wakeup.fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup.fd_.valid()) return SystemError(errno, "making an event");
  return wakeup;
}

void Wakeup::Signal() {
  uint64_t one = 1;
  (void)!write(fd_.get(), &one, sizeof(one));
}

void Wakeup::Clear() {
  uint64_t count;
  (void)!read(fd_.get(), &count, sizeof(count));
}

}  // namespace stride::broker
