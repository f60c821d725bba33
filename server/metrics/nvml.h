#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stride::metrics {

// Sensor readings of one GPU. A reading that the device or its driver does not support is absent.
struct NvmlReading {
  std::optional<double> utilization_ratio;  // share of time in which some kernel ran
  std::optional<double>
      memory_utilization_ratio;  // share of time in which memory was read or written
  std::optional<int64_t> memory_used_bytes;
  std::optional<int64_t> memory_total_bytes;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::optional<int64_t> sm_clock_hertz;
  std::optional<int64_t> memory_clock_hertz;
};

// A GPU error reported by the driver, an "XID".
struct DriverError {
  std::string uuid;
  uint64_t xid = 0;
};

// Whether only a reset of the GPU cures this XID (NVIDIA's XID catalogue). Most XIDs are caused by
// one process's kernel and end with it.
bool NeedsReset(uint64_t xid);

// NVIDIA's management library, opened at run time: the daemon does not link CUDA, and NVML creates
// no CUDA context. Thread-safe. A reading costs tens of microseconds once warm.
class Nvml {
 public:
  // nullptr when there is no library or no driver; `reason` says which.
  static std::unique_ptr<Nvml> Open(std::string* reason);
  ~Nvml();
  Nvml(const Nvml&) = delete;

  // `uuid` such as `GPU-4a1c...`. All readings are absent when NVML does not know the device.
  NvmlReading Read(const std::string& uuid);

  // Starts to collect errors of these devices for NextError. False when driver or machine reports
  // none. Call once.
  bool CollectErrors(const std::vector<std::string>& uuids);
  // Waits for an error, at most this long. One thread at a time, after CollectErrors.
  std::optional<DriverError> NextError(int milliseconds);

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  // nullptr when NVML does not know the device. Handles stay valid for the library's life.
  void* HandleOf(const std::string& uuid);

  std::unique_ptr<Library> library_;
  std::mutex mutex_;
  std::map<std::string, void*> handles_;  // guarded by mutex_
};

}  // namespace stride::metrics
