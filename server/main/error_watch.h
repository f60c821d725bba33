#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "server/engine/service/device_service.h"
#include "server/metrics/nvml.h"

namespace stride {

// Reports GPU driver errors: all of them to the log, and those that only a reset cures to the
// engine. Owns the thread that waits for them.
class ErrorWatch {
 public:
  // nullptr when there is no CUDA device, or when the driver reports no errors (logged). `nvml` and
  // `engine` must outlive the object.
  static std::unique_ptr<ErrorWatch> Start(metrics::Nvml* nvml, engine::DeviceService* devices);
  ~ErrorWatch();
  ErrorWatch(const ErrorWatch&) = delete;

 private:
  ErrorWatch(metrics::Nvml* nvml, engine::DeviceService* devices);
  void Run();

  metrics::Nvml* const nvml_;
  engine::DeviceService* const devices_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace stride
