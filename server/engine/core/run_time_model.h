#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/ops/plan.h"
#include "server/wire/worker.pb.h"

namespace stride::engine {

// Expected run times, averaged from measured ones. Runs count as equal when they have the same
// device, code and power of two of their size. Not thread-safe.
class RunTimeModel {
 public:
  // Seconds on this device: the moving average of earlier runs. Before the first, an estimate from
  // memory bandwidth and arithmetic rate.
  double Estimate(const wire::DeviceDescription& device, const std::string& code_key,
                  const ops::Plan& plan) const;
  void Record(const wire::DeviceDescription& device, const std::string& code_key,
              const ops::Plan& plan, double seconds);

 private:
  // By a hash of device, code and size. A collision makes only an estimate wrong.
  absl::flat_hash_map<uint64_t, double> average_;
};

}  // namespace stride::engine
