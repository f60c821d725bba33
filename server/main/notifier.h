#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace stride {

// Tells a service manager how the daemon is (sd_notify's protocol: datagrams to the socket named in
// NOTIFY_SOCKET). Does nothing without one.
class Notifier {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment, so
  // that children do not speak for us.
  static Notifier FromEnvironment();

  // Such as "READY=1". Lost silently when nobody listens: it is news, not work.
  void Notify(std::string_view text) const;
  // The manager kills us when it hears no "WATCHDOG=1" for this long; infinite when it does not
  // watch.
  absl::Duration watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  absl::Duration watchdog_ = absl::InfiniteDuration();
};

}  // namespace stride
