#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "server/engine/service/device_service.h"

namespace stride::testing {

// Two CPU devices, `devices/cpu:0` and `devices/cpu:1`, that serve. Thread-safe.
class FakeDevices : public engine::DeviceService {
 public:
  FakeDevices();
  void SetName(int device, const std::string& name);
  void SetState(int device, v1::Device::State state);

  std::vector<v1::Device> List() override;
  std::vector<v1::DeviceSample> Sample() override;
  engine::SpillSample SampleSpill() override { return {}; }
  int MostWorkers() override { return 0; }
  void AwaitHealth(SteadyTime) override {}
  void ReportBroken(const std::string&, const std::string&) override {}

 private:
  std::mutex mutex_;
  std::vector<v1::Device> devices_;  // guarded by mutex_
};

}  // namespace stride::testing
