#pragma once

#include <string>
#include <unordered_map>

#include "server/ops/plan.h"
#include "server/wire/worker.pb.h"

namespace stride::scheduler {

// Expected run times from measured ones. Work is alike when its code is the same and its size is of
// the same power of two. Guarded by the engine's lock.
class RunTimeModel {
 public:
  // Seconds on this device: the moving average of earlier runs, or at first what memory bandwidth
  // and arithmetic rate suggest.
  double Estimate(const wire::DeviceDescription& device, const std::string& code_key,
                  const ops::Plan& plan) const;
  void Record(const wire::DeviceDescription& device, const std::string& code_key,
              const ops::Plan& plan, double seconds);

 private:
  std::unordered_map<std::string, double> average_;
};

}  // namespace stride::scheduler
