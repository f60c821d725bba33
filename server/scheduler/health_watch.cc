#include "server/scheduler/health_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduler/canary.h"

namespace stride::scheduler {

HealthWatch::HealthWatch(Core* core, std::function<void(int)> changed)
    : core_(core),
      changed_(std::move(changed)),
      devices_(core->broker->devices().size(),
               Watched(DeviceHealth(core->options.health, core->Now()))),
      executor_(static_cast<int>(std::max<size_t>(1, devices_.size()))) {}

void HealthWatch::Start() {
  for (size_t i = 0; i < devices_.size(); ++i) Plan(static_cast<int>(i));
}

bool HealthWatch::AllKnown() const {
  return std::all_of(devices_.begin(), devices_.end(),
                     [](const Watched& watched) { return watched.health.known(); });
}

template <typename Observe>
void HealthWatch::Note(int device, Observe observe) {
  DeviceHealth& health = devices_[device].health;
  bool served = health.serving();
  observe(health);
  Plan(device);
  if (served == health.serving()) return;
  if (const auto& listener = core_->options.health_changed) {
    core_->deferred.push_back(
        [&listener, name = absl::StrCat("devices/", core_->broker->devices()[device].id()),
         serves = health.serving(), reason = health.reason()] { listener(name, serves, reason); });
  }
  changed_(device);
}

void HealthWatch::Worked(int device) { devices_[device].health.Worked(core_->Now()); }

void HealthWatch::StartFailed(int device, const absl::Status& why) {
  Note(device, [&](DeviceHealth& health) {
    health.Failed(absl::StrCat("its worker does not start: ", why.message()), core_->Now());
  });
}

void HealthWatch::LostWorker(int device, const TenantId& tenant) {
  Note(device, [&](DeviceHealth& health) { health.LostWorker(tenant, core_->Now()); });
}

void HealthWatch::Broke(int device, const std::string& why) {
  Note(device, [&](DeviceHealth& health) { health.Broke(why, core_->Now()); });
}

// Sees to it that somebody looks when the next canary is due.
void HealthWatch::Plan(int device) {
  Watched& watched = devices_[device];
  absl::Time next = watched.health.next_canary();
  if (watched.trying || watched.planned <= next) return;
  watched.planned = next;
  core_->timer.At(next, [this, device] {
    Locked lock(*core_);
    devices_[device].planned = absl::InfiniteFuture();
    if (core_->Now() < devices_[device].health.next_canary()) {
      Plan(device);  // it has worked meanwhile
    } else {
      Try(device);
    }
  });
}

void HealthWatch::Try(int device) {
  if (std::exchange(devices_[device].trying, true)) return;
  executor_.Run([this, device] {
    absl::Status status =
        RunCanary(core_->broker, &core_->timer, device, core_->options.health.timeout);
    Locked lock(*core_);
    devices_[device].trying = false;
    Note(device, [&](DeviceHealth& health) {
      if (status.ok()) {
        health.Passed(core_->Now());
      } else {
        health.Failed(absl::StrCat("its canary failed: ", status.message()), core_->Now());
      }
    });
  });
}

}  // namespace stride::scheduler
