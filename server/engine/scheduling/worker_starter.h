#pragma once

#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/broker/worker.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/worker_events.h"
#include "server/engine/core/worker_measure.h"
#include "server/engine/core/worker_seats.h"
#include "server/engine/core/worker_source.h"
#include "server/engine/scheduling/health_watch.h"

namespace stride::engine {

// Starts and ends the workers of device queues. Queues wait in line for a worker; an idle worker
// ends where it is in the way, and a busy one yields its place after `worker_turn`. A start that
// lacks resources is repeated, and one that fails makes a probe find out whether the device is to
// blame.
//
// Its state and that of each queue's WorkerStart change in global transactions.
class WorkerStarter : public WorkerSource {
 public:
  // Receivers of what happens to workers, and of their reports.
  struct Receivers {
    WorkerEvents* events;
    WorkerReports* reports;
    CancelAnswers* cancels;
  };
  WorkerStarter(Core* core, DeviceQueues* queues, HealthWatch* health, Receivers receivers);

  // Requests a worker for a queue that has none. Requests again are ignored.
  void Request(TenantTransaction& transaction, DeviceQueue& queue);
  absl::Status AwaitWorker(GlobalTransaction& transaction, DeviceQueue& queue,
                           SteadyTime deadline) override;
  absl::StatusOr<std::shared_ptr<broker::Worker>> BlockingWorker(
      DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena,
      SteadyTime deadline = SteadyTime::InfiniteFuture()) override;

  // Ends the idle worker that was used least recently, of this device or of any, but not that of
  // `except`. False: none is idle.
  bool GiveWay(GlobalTransaction& transaction, std::optional<int> device,
               const DeviceQueue* except = nullptr);
  // Called each second: ends long-idle workers and those beyond their device's bound, and makes
  // busy device queues yield.
  void Tend(GlobalTransaction& transaction);
  // A probe of the device has ended, or could not be sent.
  void ProbeEnded(GlobalTransaction& transaction, int device);

  int num_workers(GlobalTransaction& transaction, int device) const;
  // Number of workers that a device, or the machine, has room for, as far as is known now.
  int most(GlobalTransaction&, int device) const { return seats_.most(device, core_->Now()); }
  int most_of_all(GlobalTransaction&) const { return seats_.most_of_all(core_->Now()); }
  // Arena bytes of a place, and the part of them with arrays.
  struct PlaceUse {
    uint64_t arena_bytes = 0, used_bytes = 0;
  };
  // Measures the cost of workers, and computes from it how many the machine has room for. The
  // caller has no transaction.
  void Measure(absl::FunctionRef<PlaceUse(GlobalTransaction&, int place)> use_of);

 private:
  std::shared_ptr<broker::Worker> LivingWorker(DeviceQueue& queue,
                                               const std::shared_ptr<store::Arena>& arena);
  void Wait(GlobalTransaction& transaction, DeviceQueue& queue);
  void WaitAt(SteadyTime time, DeviceQueue& queue);
  void BeginStarts(GlobalTransaction& transaction);
  void Try(GlobalTransaction& transaction, DeviceQueue& queue);
  void Started(GlobalTransaction& transaction, DeviceQueue& queue,
               std::shared_ptr<broker::Worker> worker, uint64_t record);
  broker::WorkerCallbacks CallbacksFor(DeviceQueue& queue);
  void Done(DeviceQueue& queue, const broker::Worker* worker,
            absl::Span<const wire::TaskResult> results);
  void Died(DeviceQueue& queue, const broker::Worker* worker, const broker::WorkerDeath& death);
  void NotStarted(GlobalTransaction& transaction, DeviceQueue& queue, const absl::Status& why);
  void Lacked(GlobalTransaction& transaction, DeviceQueue& queue, const absl::Status& why);
  void Failed(GlobalTransaction& transaction, DeviceQueue& queue, const absl::Status& why);
  void EndRequest(GlobalTransaction& transaction, DeviceQueue& queue, const absl::Status& status);
  static absl::Status NoRoomFor(const DeviceQueue& queue);
  static bool MayEnd(const DeviceQueue& queue);
  static bool IsIdle(const DeviceQueue& queue);
  void End(GlobalTransaction& transaction, DeviceQueue& queue);
  void AskToYield(GlobalTransaction& transaction);
  void YieldIfDone(GlobalTransaction& transaction, DeviceQueue& queue);
  void StopYielding(GlobalTransaction& transaction);
  bool StartsSlowDown(int device) const;
  int MostOf(GlobalTransaction& transaction, int device, std::optional<int64_t> used,
             const PlaceUse& use);
  int MostOfAll(double host_bytes) const;

  Core* const core_;
  DeviceQueues* const queues_;
  HealthWatch* const health_;
  const Receivers receivers_;
  WorkerSeats seats_;
  WorkerCosts costs_;
  bool any_yields_ = false;                              // perhaps
  SteadyTime next_look_ = SteadyTime::InfiniteFuture();  // when the timer looks at those in line
};

}  // namespace stride::engine
