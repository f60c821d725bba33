#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/timer.h"
#include "server/broker/broker.h"

namespace stride::engine {

struct ProbeResult {
  absl::Status status;
  bool started = false;  // a worker started, so a failure is the device's
};

// Runs work with a known answer on a device, in a worker of its own: fresh memory is filled with a
// pattern, the device clears a part, and all of it is read back. Proves that workers start, and
// that memory can be allocated, written, launched upon and read. The worker is a spare where one is
// available, serves no tenant, and ends with this call. `timer` kills the worker after `timeout`,
// which excludes its start. Blocks; the caller has no transaction.
ProbeResult RunProbe(broker::Broker* broker, Timer* timer, int device, absl::Duration timeout);

}  // namespace stride::engine
