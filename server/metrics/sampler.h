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

// Sources of a sample's two parts.
struct Sources {
  std::function<std::vector<v1::Device>()> devices;            // fixed for the daemon's life
  std::function<std::vector<v1::DeviceSample>()> own_account;  // in the same order
  std::function<NvmlReading(const std::string& uuid)> nvml;    // empty: no NVML
};

class Watch;

// Merges the hardware's readings with the engine's own account. Thread-safe; must outlive its
// watches.
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
  // Times at the daemon's start: the previous reading for the first sample of a watch.
  const std::optional<CpuTimes> first_times_;
};

// The samples of one client: utilization covers the time since its previous sample. One thread.
class Watch {
 public:
  // One sample per device, in the order of Sources::devices.
  std::vector<v1::DeviceSample> Sample();

 private:
  friend class Sampler;
  explicit Watch(const Sampler& sampler) : sampler_(sampler), times_(sampler.first_times_) {}

  const Sampler& sampler_;
  std::optional<CpuTimes> times_;
  std::optional<double> utilization_;
};

}  // namespace stride::metrics
