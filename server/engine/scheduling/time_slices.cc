#include "server/engine/scheduling/time_slices.h"

#include <cmath>

namespace stride::engine {
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

void TimeSlices::NoteDemand(DeviceQueue& queue) {
  FairShare::Flow& flow = queue.flow;
  const bool ready =
      !queue.sending.ready.empty() && queue.worker != nullptr && !queue.start.yields();
  const bool in_flight = !queue.sending.in_flight.empty();
  if (flow.ready == ready && flow.in_flight == in_flight) return;
  const double weight = core_->options.tenant_weight
                            ? core_->options.tenant_weight(queue.tenant)
                            : core_->accounts->QuotaOf(queue.tenant).weight;
  Device& device = devices_[queue.device];
  absl::MutexLock lock(&device.mutex);
  flow.weight = weight;
  device.share.Update(flow, ready, in_flight, core_->Now());
}

void TimeSlices::Charge(DeviceQueue& queue, double run_seconds) {
  Device& device = devices_[queue.device];
  absl::MutexLock lock(&device.mutex);
  device.share.Charge(queue.flow, run_seconds, core_->Now());
}

double TimeSlices::Budget(DeviceQueue& queue) {
  const SteadyTime now = core_->Now();
  double budget;
  {
    Device& device = devices_[queue.device];
    absl::MutexLock lock(&device.mutex);
    device.share.Advance(now);
    budget = device.share.Allowance(queue.flow, now);
  }
  if (std::isinf(budget) || budget <= 0) return budget;
  for (const DeviceQueue::InFlight& entry : queue.sending.in_flight) {
    if (entry.last && entry.task != nullptr) budget -= entry.task->sent.expected_seconds;
  }
  return budget;
}

// The next queue whose slice begins. Null: none; the timer looks when one may begin.
DeviceQueue* TimeSlices::Next(int index) {
  Device& device = devices_[index];
  SteadyTime wake;
  {
    absl::MutexLock lock(&device.mutex);
    device.share.Advance(core_->Now());
    if (FairShare::Flow* flow = device.share.TakeTurn()) return flow->queue;
    wake = device.share.wake();
    if (wake >= device.wake) return nullptr;  // it looks before
    device.wake = wake;
  }
  WakeAt(wake, index);
  return nullptr;
}

// A queue of another partition begins in a transaction of its own, after this one.
void TimeSlices::Begin(TenantTransaction& transaction, int device) {
  DeviceQueue* queue = Next(device);
  if (queue == nullptr) return;
  if (transaction.Has(queue->tenant)) {
    transaction.work().Pump(*queue);
  } else {
    transaction.Defer([this, queue] { BeginOf(*queue); });
  }
  transaction.work().GiveTurns(device);  // the queue may have nothing to send
}

// The caller has no transaction. Does not wait for the queue's partition: this thread works for
// another tenant, or for all.
void TimeSlices::BeginOf(DeviceQueue& queue) {
  if (auto transaction = TenantTransaction::IfFree(*core_, queue.tenant)) {
    transaction->work().Pump(queue);
    return;
  }
  core_->turns.Run([this, &queue] {
    TenantTransaction transaction(*core_, queue.tenant);
    transaction.work().Pump(queue);
  });
}

void TimeSlices::WakeAt(SteadyTime time, int device) {
  core_->timer.At(time, [this, device] {
    {
      Device& woken = devices_[device];
      absl::MutexLock lock(&woken.mutex);
      woken.wake = SteadyTime::InfiniteFuture();
    }
    while (DeviceQueue* queue = Next(device)) BeginOf(*queue);
  });
}

}  // namespace stride::engine
