#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/metrics/host.h"
#include "server/metrics/nvml.h"
#include "stride/v1/device_service.pb.h"

namespace stride::metrics {

// Where a sample's two halves come from.
struct Sources {
  std::function<std::vector<v1::Device>()> devices;            // fixed for the daemon's life
  std::function<std::vector<v1::DeviceSample>()> own_account;  // in the same order
  std::function<NvmlReading(const std::string& uuid)> nvml;    // empty: no NVML
};

class Watch;

// Merges what the hardware tells with the engine's own account. Thread-safe; makes watches, which
// it must outlive.
class Sampler {
 public:
  explicit Sampler(Sources sources, Host host = Host());
  std::unique_ptr<Watch> NewWatch() const;

 private:
  friend class Watch;
  void AddGpu(const std::string& uuid, v1::DeviceSample* sample) const;
  void AddHost(std::optional<double> utilization, v1::DeviceSample* sample) const;

  const Sources sources_;
  const Host host_;
  // From the daemon's start: the "last interval" of a watch that has just begun.
  const std::optional<CpuTimes> first_times_;
};

// A run of samples of one client: utilization is over the time since its last one. One thread.
class Watch {
 public:
  // Of every device, in the order of the list.
  std::vector<v1::DeviceSample> Sample();

 private:
  friend class Sampler;
  explicit Watch(const Sampler& sampler) : sampler_(sampler), times_(sampler.first_times_) {}

  const Sampler& sampler_;
  std::optional<CpuTimes> times_;
  std::optional<double> utilization_;
};

}  // namespace stride::metrics
