#include "server/engine/scheduling/health_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/steady_time.h"
#include "server/base/system_error.h"
#include "server/engine/scheduling/health_probe.h"

namespace stride::engine {

HealthWatch::HealthWatch(Core* core, Hooks hooks)
    : core_(core),
      hooks_(std::move(hooks)),
      executor_(static_cast<int>(std::max<size_t>(1, core->broker->devices().size()))) {
  for (size_t i = 0; i < core->broker->devices().size(); ++i)
    devices_.emplace_back(DeviceHealth(core->options.health, core->Now()));
}

void HealthWatch::Start(GlobalTransaction& transaction) {
  for (size_t i = 0; i < devices_.size(); ++i) Plan(transaction, static_cast<int>(i));
}

bool HealthWatch::AllKnown() const {
  return std::all_of(devices_.begin(), devices_.end(),
                     [](const Watched& watched) { return watched.health.known(); });
}

template <typename Observe>
void HealthWatch::Note(GlobalTransaction& transaction, int device, Observe observe) {
  DeviceHealth& health = UpToDate(device);
  bool served = health.serving();
  observe(health);
  Plan(transaction, device);
  if (served == health.serving()) return;
  if (const auto& listener = core_->options.health_changed) {
    transaction.Defer(
        [&listener, name = absl::StrCat("devices/", core_->broker->devices()[device].id()),
         serves = health.serving(), reason = health.reason()] { listener(name, serves, reason); });
  }
  hooks_.changed(transaction, device);
}

void HealthWatch::Worked(TenantTransaction& transaction, int device) {
  Watched& watched = devices_[device];
  if (watched.health.NeedsProof()) {
    transaction.Defer([this, device] {
      GlobalTransaction transaction(*core_);
      UpToDate(device).Worked(core_->Now());
    });
  } else {
    watched.worked.store(absl::ToInt64Nanoseconds(core_->Now().since_boot()),
                         std::memory_order_relaxed);
  }
}

DeviceHealth& HealthWatch::UpToDate(int device) {
  Watched& watched = devices_[device];
  const int64_t worked = watched.worked.exchange(0, std::memory_order_relaxed);
  if (worked != 0) watched.health.Worked(SteadyTime::SinceBoot(absl::Nanoseconds(worked)));
  return watched.health;
}

void HealthWatch::Suspect(GlobalTransaction& transaction, int device) {
  Note(transaction, device, [&](DeviceHealth& health) { health.Suspect(core_->Now()); });
}

void HealthWatch::LostWorker(GlobalTransaction& transaction, int device, const TenantId& tenant) {
  Note(transaction, device, [&](DeviceHealth& health) { health.LostWorker(tenant, core_->Now()); });
}

void HealthWatch::Broke(GlobalTransaction& transaction, int device, const std::string& why) {
  Note(transaction, device, [&](DeviceHealth& health) { health.Broke(why, core_->Now()); });
}

// Sets the timer for the time when the next probe is due.
void HealthWatch::Plan(GlobalTransaction& transaction, int device) {
  Watched& watched = devices_[device];
  SteadyTime next = UpToDate(device).next_probe();
  if (watched.trying || watched.planned <= next) return;
  watched.planned = next;
  core_->timer.At(next, [this, device] {
    GlobalTransaction transaction(*core_);
    devices_[device].planned = SteadyTime::InfiniteFuture();
    if (core_->Now() < UpToDate(device).next_probe()) {
      Plan(transaction, device);  // the device has worked since
    } else {
      Try(transaction, device);
    }
  });
}

void HealthWatch::Try(GlobalTransaction& transaction, int device) {
  if (std::exchange(devices_[device].trying, true)) return;
  executor_.Run([this, device] {
    const ProbeResult result =
        RunProbe(core_->broker, &core_->timer, device, core_->options.health.timeout);
    GlobalTransaction transaction(*core_);
    devices_[device].trying = false;
    Tell(transaction, device, result);
    hooks_.tried(transaction, device);
  });
}

// A probe that found no worker or no memory may lack resources that tenants have. While any of
// their workers is idle, idle workers end, more each time, and the probe is no evidence.
void HealthWatch::Tell(GlobalTransaction& transaction, int device, const ProbeResult& result) {
  int& num_given = devices_[device].num_given;
  int given = 0;
  if (!result.status.ok() && (!result.started || IsLack(result.status))) {
    while (given < num_given && hooks_.give_way(transaction, device)) ++given;
  }
  num_given = given > 0 ? num_given * 2 : 1;
  const SteadyTime now = core_->Now();
  Note(transaction, device, [&](DeviceHealth& health) {
    const absl::string_view why = result.status.message();
    if (result.status.ok()) {
      health.Passed(now);
    } else if (given > 0 || IsLack(result.status)) {
      health.CouldNotTell(now);
    } else if (result.started) {
      health.Failed(absl::StrCat("its canary failed: ", why), now);
    } else {
      health.Failed(absl::StrCat("its worker does not start: ", why), now);
    }
  });
}

}  // namespace stride::engine
