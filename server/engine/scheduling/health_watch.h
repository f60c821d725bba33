#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "server/base/executor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/health.h"
#include "server/engine/scheduling/health_probe.h"

namespace stride::engine {

// Watches the health of all devices: collects observations, and sends a probe to a device without
// any. Changes in global transactions.
class HealthWatch {
 public:
  struct Hooks {
    std::function<void(GlobalTransaction&, int device)>
        changed;  // the device began or ceased to serve
    std::function<bool(GlobalTransaction&, int device)>
        give_way;  // ends an idle worker; false: there is none
    std::function<void(GlobalTransaction&, int device)> tried;  // a probe has ended
  };
  HealthWatch(Core* core, Hooks hooks);

  // Sends the first canaries.
  void Start(GlobalTransaction& transaction);
  // Blocks for canaries in flight: the broker must have been shut down. The caller has no
  // transaction.
  void Stop() { executor_.Stop(); }

  bool Serves(int device) const { return devices_[device].health.serving(); }
  const DeviceHealth& of(int device) const { return devices_[device].health; }
  // Whether something is known of each device.
  bool AllKnown() const;

  void Worked(TenantTransaction& transaction, int device);
  void Suspect(GlobalTransaction& transaction, int device);
  void LostWorker(GlobalTransaction& transaction, int device, const TenantId& tenant);
  void Broke(GlobalTransaction& transaction, int device, const std::string& why);

 private:
  struct Watched {
    explicit Watched(DeviceHealth health) : health(std::move(health)) {}
    DeviceHealth health;
    // Time of the latest work that `health` has not observed, in ns since boot; 0: none.
    std::atomic<int64_t> worked{0};
    bool trying = false;                                // a probe is running
    int num_given = 1;                                  // idle workers to end for the next probe
    SteadyTime planned = SteadyTime::InfiniteFuture();  // when the timer looks next
  };
  template <typename Observe>
  void Note(GlobalTransaction& transaction, int device, Observe observe);
  // Returns the device's health after it has observed all work until now.
  DeviceHealth& UpToDate(int device);
  void Plan(GlobalTransaction& transaction, int device);
  void Try(GlobalTransaction& transaction, int device);
  void Tell(GlobalTransaction& transaction, int device, const ProbeResult& result);

  Core* const core_;
  const Hooks hooks_;
  std::deque<Watched> devices_;
  Executor executor_;  // a probe blocks, perhaps for long
};

}  // namespace stride::engine
