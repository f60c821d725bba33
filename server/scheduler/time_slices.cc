#include "server/scheduler/time_slices.h"

#include <cmath>

namespace stride::scheduler {
namespace {

// A queue keeps its slice for at least 1 / kYieldPart of the quantum. The default of 4 ms is 30
// times the cost of a change of tenants on a GPU (docs/isolation.md). So a tenant that wakes up as
// often as it can costs the others 7 % of their share.
constexpr int kYieldPart = 5;

}  // namespace

TimeSlices::TimeSlices(Core* core) : core_(core) {
  const EngineOptions& options = core->options;
  for (size_t i = 0; i < core->broker->devices().size(); ++i) {
    devices_.emplace_back(FairShare::Options{.quantum = options.fair_quantum,
                                             .yield_after = options.fair_quantum / kYieldPart,
                                             .hand_over = options.fair_hand_over});
  }
}

void TimeSlices::NoteDemand(Lane& lane) {
  FairShare::Flow& flow = lane.flow;
  const bool ready = !lane.ready.empty() && lane.worker != nullptr && !lane.start.yields();
  const bool in_flight = !lane.in_flight.empty();
  if (flow.ready == ready && flow.in_flight == in_flight) return;
  const double weight = core_->options.tenant_weight ? core_->options.tenant_weight(lane.tenant)
                                                     : core_->accounts->QuotaOf(lane.tenant).weight;
  Device& device = devices_[lane.device];
  absl::MutexLock lock(&device.mutex);
  flow.weight = weight;
  device.share.Update(flow, ready, in_flight, core_->Now());
}

void TimeSlices::Charge(Lane& lane, double run_seconds) {
  Device& device = devices_[lane.device];
  absl::MutexLock lock(&device.mutex);
  device.share.Charge(lane.flow, run_seconds, core_->Now());
}

double TimeSlices::Budget(Lane& lane) {
  const SteadyTime now = core_->Now();
  double budget;
  {
    Device& device = devices_[lane.device];
    absl::MutexLock lock(&device.mutex);
    device.share.Advance(now);
    budget = device.share.Allowance(lane.flow, now);
  }
  if (std::isinf(budget) || budget <= 0) return budget;
  for (const Lane::InFlight& entry : lane.in_flight) {
    if (entry.last && entry.task != nullptr) budget -= entry.task->expected_seconds;
  }
  return budget;
}

// The next queue whose slice begins. Null: none; the timer looks when one may begin.
Lane* TimeSlices::Next(int index) {
  Device& device = devices_[index];
  SteadyTime wake;
  {
    absl::MutexLock lock(&device.mutex);
    device.share.Advance(core_->Now());
    if (FairShare::Flow* flow = device.share.TakeTurn()) return flow->lane;
    wake = device.share.wake();
    if (wake >= device.wake) return nullptr;  // it looks before
    device.wake = wake;
  }
  WakeAt(wake, index);
  return nullptr;
}

// A queue of another partition begins in a transaction of its own, after this one.
void TimeSlices::Begin(TenantTransaction& transaction, int device) {
  Lane* lane = Next(device);
  if (lane == nullptr) return;
  if (transaction.Has(lane->tenant)) {
    transaction.work().Pump(*lane);
  } else {
    transaction.Defer([this, lane] { BeginOf(*lane); });
  }
  transaction.work().GiveTurns(device);  // the queue may have nothing to send
}

// The caller has no transaction. Does not wait for the queue's partition: this thread works for
// another tenant, or for all.
void TimeSlices::BeginOf(Lane& lane) {
  if (auto transaction = TenantTransaction::IfFree(*core_, lane.tenant)) {
    transaction->work().Pump(lane);
    return;
  }
  core_->turns.Run([this, &lane] {
    TenantTransaction transaction(*core_, lane.tenant);
    transaction.work().Pump(lane);
  });
}

void TimeSlices::WakeAt(SteadyTime time, int device) {
  core_->timer.At(time, [this, device] {
    {
      Device& woken = devices_[device];
      absl::MutexLock lock(&woken.mutex);
      woken.wake = SteadyTime::InfiniteFuture();
    }
    while (Lane* lane = Next(device)) BeginOf(*lane);
  });
}

}  // namespace stride::scheduler
