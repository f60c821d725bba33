// Scheduler: which lane of a device may send tasks now, and how many.
#include <algorithm>
#include <cmath>
#include <utility>

#include "server/base/steady_time.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {

void Scheduler::NoteDemand(Lane& lane) {
  FairShare::Flow& flow = lane.flow;
  bool ready = !lane.ready.empty() && lane.worker != nullptr && !lane.yielding;
  bool in_flight = !lane.in_flight.empty();
  if (flow.ready == ready && flow.in_flight == in_flight) return;
  const double weight = core_->options.tenant_weight ? core_->options.tenant_weight(lane.tenant)
                                                     : core_->accounts->QuotaOf(lane.tenant).weight;
  Turns& turns = turns_[lane.device];
  absl::MutexLock lock(&turns.mutex);
  flow.weight = weight;
  turns.share.Update(flow, ready, in_flight, core_->Now());
}

// For tasks that have ended, together.
void Scheduler::ChargeTurn(Lane& lane, double run_seconds) {
  Turns& turns = turns_[lane.device];
  absl::MutexLock lock(&turns.mutex);
  turns.share.Charge(lane.flow, run_seconds, core_->Now());
}

// Seconds of expected run time that may still be sent to the lane. One task is always sent where it
// is above 0, so that a long one has its turn too.
double Scheduler::Budget(Lane& lane) {
  const SteadyTime now = core_->Now();
  double budget;
  {
    Turns& turns = turns_[lane.device];
    absl::MutexLock lock(&turns.mutex);
    turns.share.Advance(now);
    budget = turns.share.Allowance(lane.flow, now);
  }
  if (std::isinf(budget) || budget <= 0) return budget;
  for (const Lane::InFlight& entry : lane.in_flight) {
    if (entry.last && entry.task != nullptr) budget -= entry.task->expected_seconds;
  }
  return budget;
}

// The next flow whose time slice begins. Null: none; the timer retries when one may begin.
FairShare::Flow* Scheduler::NextTurn(int device) {
  Turns& turns = turns_[device];
  SteadyTime wake;
  {
    absl::MutexLock lock(&turns.mutex);
    turns.share.Advance(core_->Now());
    if (FairShare::Flow* flow = turns.share.TakeTurn()) return flow;
    wake = turns.share.wake();
    if (wake >= turns.wake) return nullptr;  // it looks before
    turns.wake = wake;
  }
  WakeForTurns(device, wake);
  return nullptr;
}

void Scheduler::GiveTurns(TenantTransaction& transaction, int device) {
  auto& devices = transaction.work().devices;
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
}

// A device queue of another partition has its turn in a transaction of its own, after this one.
void Scheduler::GiveTurnsNow(TenantTransaction& transaction, int device) {
  while (FairShare::Flow* flow = NextTurn(device)) {
    Lane& lane = *flow->lane;
    if (transaction.Has(lane.tenant)) {
      PumpNow(transaction, lane);
    } else {
      transaction.Defer([this, &lane] { BeginTurn(lane); });
    }
  }
}

// The caller has no transaction. Does not wait for the device queue's partition: this thread works
// for another tenant, or for all.
void Scheduler::BeginTurn(Lane& lane) {
  if (auto transaction = TenantTransaction::IfFree(*core_, lane.tenant)) {
    Pump(*transaction, lane);
    return;
  }
  core_->turns.Run([this, &lane] {
    TenantTransaction transaction(*core_, lane.tenant);
    Pump(transaction, lane);
  });
}

void Scheduler::WakeForTurns(int device, SteadyTime wake) {
  core_->timer.At(wake, [this, device] {
    {
      Turns& turns = turns_[device];
      absl::MutexLock of_turns(&turns.mutex);
      turns.wake = SteadyTime::InfiniteFuture();
    }
    while (FairShare::Flow* flow = NextTurn(device)) BeginTurn(*flow->lane);
  });
}

}  // namespace stride::scheduler
