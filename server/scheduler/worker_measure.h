#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stride::scheduler {

// The resources of the host that one process uses.
struct ProcessUse {
  int64_t private_bytes = 0;
  int num_threads = 0;
};

// The cost of a worker, as measured so far: memory of its device, memory of the host, threads.
// Before the first measurement, the values are those of the machines of development. Global
// transactions guard it.
class WorkerCosts {
 public:
  explicit WorkerCosts(int num_devices) : device_bytes_(num_devices, kDeviceBytes) {}

  // `used`: the device's bytes used by all processes now; `before`: before the first worker.
  void DeviceUsed(int device, int64_t used, int64_t before, int64_t arena_bytes, int num_workers);
  void Measured(const std::vector<ProcessUse>& workers);

  double device_bytes(int device) const { return device_bytes_[device]; }
  double host_bytes() const { return host_bytes_; }
  double num_threads() const { return num_threads_; }

 private:
  static constexpr double kDeviceBytes = 640 << 20;
  std::vector<double> device_bytes_;
  double host_bytes_ = 64 << 20;
  double num_threads_ = 8;
};

// From /proc; absent: there is no such process, or access is denied.
std::optional<ProcessUse> ReadProcessUse(int pid);

}  // namespace stride::scheduler
