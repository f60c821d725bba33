#pragma once

#include <string>
#include <vector>

#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/device_service.h"

namespace stride::engine {

// The broker's devices with the scheduler's view of their health and load. Thread-safe.
class Devices : public DeviceService {
 public:
  // Both must outlive it.
  Devices(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}

  std::vector<v1::Device> List() override;
  std::vector<v1::DeviceSample> Sample() override;
  SpillSample SampleSpill() override;
  int MostWorkers() override;
  void AwaitHealth(SteadyTime deadline) override;
  void ReportBroken(const std::string& device, const std::string& reason) override;

 private:
  Core* const core_;
  Scheduler* const scheduler_;
};

}  // namespace stride::engine
