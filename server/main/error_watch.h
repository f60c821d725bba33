#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "server/metrics/nvml.h"
#include "server/scheduler/service/device_service.h"

namespace stride {

// Tells the engine of GPUs whose driver reports an error that only a reset cures, and the log of
// all errors. Owns the thread that waits for them.
class ErrorWatch {
 public:
  // nullptr when the machine tells of no errors (said in the log). Both must outlive it.
  static std::unique_ptr<ErrorWatch> Start(metrics::Nvml* nvml, scheduler::DeviceService* devices);
  ~ErrorWatch();
  ErrorWatch(const ErrorWatch&) = delete;

 private:
  ErrorWatch(metrics::Nvml* nvml, scheduler::DeviceService* devices);
  void Run();

  metrics::Nvml* const nvml_;
  scheduler::DeviceService* const devices_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace stride
