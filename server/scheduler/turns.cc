// Scheduler: which lane of a device may send tasks now, and how many.
#include <cmath>
#include <utility>

#include "server/scheduler/scheduler.h"

namespace stride::scheduler {

void Scheduler::NoteDemand(Lane& lane) {
  FairShare::Flow& flow = lane.flow;
  bool ready = !lane.ready.empty() && lane.worker != nullptr;
  bool in_flight = !lane.in_flight.empty();
  if (flow.ready == ready && flow.in_flight == in_flight) return;
  flow.weight = core_->options.tenant_weight ? core_->options.tenant_weight(lane.tenant)
                                             : core_->accounts->QuotaOf(lane.tenant).weight;
  turns_[lane.device].share.Update(flow, ready, in_flight, core_->Now());
}

// Seconds of expected run time that may still be sent to the lane. One task is always sent where it
// is above 0, so that a long one has its turn too.
double Scheduler::Budget(Lane& lane) {
  FairShare& share = turns_[lane.device].share;
  absl::Time now = core_->Now();
  share.Advance(now);
  double budget = share.Allowance(lane.flow, now);
  if (std::isinf(budget) || budget <= 0) return budget;
  for (const Lane::InFlight& entry : lane.in_flight) {
    if (entry.last && entry.task != nullptr) budget -= entry.task->expected_seconds;
  }
  return budget;
}

void Scheduler::GiveTurns(int device) {
  Turns& turns = turns_[device];
  if (std::exchange(turns.giving, true)) return;
  for (;;) {
    turns.share.Advance(core_->Now());
    FairShare::Flow* flow = turns.share.TakeTurn();
    if (flow == nullptr) break;
    Pump(*flow->lane);
  }
  turns.giving = false;
  WakeForTurns(device);
}

void Scheduler::WakeForTurns(int device) {
  Turns& turns = turns_[device];
  absl::Time wake = turns.share.wake();
  if (wake >= turns.wake) return;
  turns.wake = wake;
  core_->timer.At(wake, [this, device] {
    Locked lock(*core_);
    turns_[device].wake = absl::InfiniteFuture();
    GiveTurns(device);
  });
}

}  // namespace stride::scheduler
