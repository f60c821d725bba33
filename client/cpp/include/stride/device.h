// The machine's devices and their load.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stride {

struct Device {
  enum class State { kUnspecified, kServing, kNotServing, kStarting };
  std::string name;  // `devices/cpu:0`, `devices/GPU-4a1c...`
  std::string kind;  // `cuda` or `cpu`
  std::string model;
  int index = 0;
  State state = State::kUnspecified;
  std::string state_reason;
  int64_t memory_total_bytes = 0;
  int num_compute_units = 0;
  std::string target;
  std::string pci_bus_id;
  std::string driver_version;
  int max_workers = 0;  // tenants whose work it runs at once; others take turns. 0: unknown

  // `devices/cuda:0`, by kind and index: valid wherever `name` is. The same on each machine, though
  // not for the same device.
  std::string place() const;
};

// Limits of the daemon for the clients of all tenants together. 0: unknown.
struct DaemonLimits {
  int64_t descriptors = 0;  // file descriptors of the daemon
  int64_t open_descriptors = 0;
  int64_t connections = 0;
  int64_t workers = 0;  // at once, on all devices
};

// One device at one moment. A reading that the device does not support is absent.
struct DeviceSample {
  std::string device;
  std::chrono::system_clock::time_point time;
  std::optional<double> utilization_ratio, memory_utilization_ratio;
  std::optional<int64_t> memory_used_bytes, memory_total_bytes;
  std::optional<double> temperature_celsius, power_watts, power_limit_watts;
  std::optional<int64_t> sm_clock_hertz, memory_clock_hertz;
  int64_t arena_bytes = 0, array_bytes = 0;
  int queue_depth = 0;
  double queue_seconds = 0, busy_seconds = 0;
  int64_t jobs_succeeded = 0, jobs_failed = 0, upload_bytes = 0, download_bytes = 0;
  int num_workers = 0;
  int64_t worker_restarts = 0;
};

struct WatchOptions {
  std::vector<std::string> devices;  // empty: all
  std::chrono::milliseconds interval{1000};
  int max_samples = 0;  // 0: until stopped
};

}  // namespace stride
