#pragma once

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/fair_share.h"

namespace stride::engine {

// Shares each device's time among its queues: which may send tasks now, and how many. The decision
// is FairShare's, one for each device, under a mutex of its own. That mutex is taken under any
// other lock of ours.
//
// A queue whose slice begins enters the work list of a transaction that has its tenant.
class TimeSlices {
 public:
  explicit TimeSlices(Core* core);

  // To be called when the queue has new tasks ready or in flight, or no more of them.
  void NoteDemand(DeviceQueue& queue);
  // Charges the queue for tasks that have ended, together.
  void Charge(DeviceQueue& queue, double run_seconds);
  // Seconds of expected run time that may still be sent to the queue's worker. One task is always
  // sent where it is above 0, so that a long one has its slice too.
  double Budget(DeviceQueue& queue);
  // Begins the device's next slice if it is due, else the timer does.
  void Begin(TenantTransaction& transaction, int device);

 private:
  struct alignas(64) Device {
    explicit Device(FairShare::Options options) : share(options) {}
    absl::Mutex mutex;
    FairShare share ABSL_GUARDED_BY(mutex);
    // When the timer looks at the device.
    SteadyTime wake ABSL_GUARDED_BY(mutex) = SteadyTime::InfiniteFuture();
  };
  DeviceQueue* Next(int device);
  void BeginOf(DeviceQueue& queue);
  void WakeAt(SteadyTime time, int device);

  Core* const core_;
  std::deque<Device> devices_;
};

}  // namespace stride::engine
