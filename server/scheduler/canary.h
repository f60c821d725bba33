#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/timer.h"
#include "server/broker/broker.h"

namespace stride::scheduler {

struct CanaryResult {
  absl::Status status;
  bool started = false;  // it had a worker: what failed was asked of the device
};

// Has a device do something with a known answer, in a worker of its own: fresh memory is filled
// with a pattern, the device clears a part of it, and all of it is read back. Proves that workers
// start, that memory can be had, written, launched upon and read. The worker is a spare where there
// is one, serves no tenant, and ends with this: `timer` kills it when it takes too long, not
// counting its start. Blocks; no lock may be held.
CanaryResult RunCanary(broker::Broker* broker, Timer* timer, int device, absl::Duration timeout);

}  // namespace stride::scheduler
