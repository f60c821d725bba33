#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace stride {

// Notifies a service manager of the daemon's state (sd_notify's protocol: datagrams to the socket
// named in NOTIFY_SOCKET). Does nothing without one.
class Notifier {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the environment, so
  // that child processes do not notify in the daemon's name.
  static Notifier FromEnvironment();

  // Sends a state such as "READY=1". Errors are ignored, since the daemon does not depend on a
  // listener.
  void Notify(std::string_view text) const;
  // The manager kills the daemon when it gets no "WATCHDOG=1" for this long; infinite: no watchdog.
  absl::Duration watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  absl::Duration watchdog_ = absl::InfiniteDuration();
};

}  // namespace stride
