#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stride::engine {

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
  explicit WorkerCosts(int num_devices) : devices_(num_devices) {}

  // `used`: the device's bytes used by all processes now. The first call comes before the first
  // worker.
  void DeviceUsed(int device, int64_t used, int64_t arena_bytes, int num_workers);
  void Measured(const std::vector<ProcessUse>& workers);

  double device_bytes(int device) const { return devices_[device].worker_bytes; }
  // The device's bytes in use before its first worker.
  int64_t device_bytes_before(int device) const { return devices_[device].before.value_or(0); }
  double host_bytes() const { return host_bytes_; }
  double num_threads() const { return num_threads_; }

 private:
  struct Device {
    double worker_bytes = 640 << 20;
    std::optional<int64_t> before;
  };
  std::vector<Device> devices_;
  double host_bytes_ = 64 << 20;
  double num_threads_ = 8;
};

// From /proc; absent: there is no such process, or access is denied.
std::optional<ProcessUse> ReadProcessUse(int pid);

}  // namespace stride::engine
