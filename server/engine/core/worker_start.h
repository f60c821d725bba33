#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/base/steady_time.h"
#include "server/engine/core/worker_seats.h"

namespace stride::engine {

// The way of one device queue to its worker. WorkerStarter alone changes it, in global
// transactions, except `requested_`, which a transaction of the tenant sets.
class WorkerStart {
 public:
  WorkerStart(DeviceQueue* queue, int device) {
    seat_.queue = queue;
    seat_.device = device;
  }

  // The queue sends no more tasks to its worker: another queue receives the worker's place.
  bool yields() const { return yields_; }

 private:
  friend class WorkerStarter;

  WorkerSeats::Seat seat_;
  bool requested_ = false;      // it waits in line, or the worker is being started
  SteadyTime requested_since_;  // begin of this request
  int num_tries_ = 0;           // starts of this request
  bool awaits_probe_ = false;   // a probe decides whether the device is to blame
  SteadyTime lacks_since_ = SteadyTime::InfiniteFuture();  // first start that failed for lack
  absl::Status lack_;                                      // of the latest such start
  absl::Status error_;                                     // of the last ended request
  uint64_t num_ended_ = 0;                                 // ended requests
  int num_failures_ = 0;  // consecutive failed starts without a lack
  int num_awaiting_ = 0;  // threads in WorkerStarter::Await
  bool yields_ = false;
};

}  // namespace stride::engine
