#include "server/broker/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace stride::broker {

Wakeup::Wakeup() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Wakeup::Signal() {
  uint64_t one = 1;
  (void)!write(fd_.get(), &one, sizeof(one));
}

void Wakeup::Clear() {
  uint64_t count;
  (void)!read(fd_.get(), &count, sizeof(count));
}

}  // namespace stride::broker
