#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/ops/plan.h"
#include "server/wire/worker.pb.h"

namespace stride::scheduler {

// Expected run times from measured ones. Work is alike when its code is the same and its size is of
// the same power of two. Not thread-safe.
class RunTimeModel {
 public:
  // Seconds on this device: the moving average of earlier runs, or at first what memory bandwidth
  // and arithmetic rate suggest.
  double Estimate(const wire::DeviceDescription& device, const std::string& code_key,
                  const ops::Plan& plan) const;
  void Record(const wire::DeviceDescription& device, const std::string& code_key,
              const ops::Plan& plan, double seconds);

 private:
  // By a hash of device, code and size: two that share one would be estimated alike, no more.
  absl::flat_hash_map<uint64_t, double> average_;
};

}  // namespace stride::scheduler
