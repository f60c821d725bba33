#pragma once

#include <string>
#include <vector>

#include "server/base/steady_time.h"
#include "server/engine/service/spill_sample.h"
#include "stride/v1/device_service.pb.h"

namespace stride::engine {

// The devices of the daemon, their health and their load. Thread-safe; the caller has no
// transaction. Only AwaitHealth blocks for more than the lock.
class DeviceService {
 public:
  virtual ~DeviceService() = default;

  // In a fixed order, that of the broker.
  virtual std::vector<v1::Device> List() = 0;
  // The daemon's own measurements (fields from `arena_bytes` on), in the order of List.
  // server/metrics adds readings of the hardware.
  virtual std::vector<v1::DeviceSample> Sample() = 0;
  virtual SpillSample SampleSpill() = 0;
  // Current bound on the number of running workers, over all devices.
  virtual int MostWorkers() = 0;

  // Blocks until the health of each device is known or `deadline`.
  virtual void AwaitHealth(SteadyTime deadline) = 0;
  // Reports a hardware error of a device, `devices/{id}`, that only a reset can clear. The device
  // stops serving. An unknown name is ignored.
  virtual void ReportBroken(const std::string& device, const std::string& reason) = 0;
};

}  // namespace stride::engine
