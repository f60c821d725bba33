// A tenant's use and quotas.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stride {

struct DeviceUsage {
  std::string device;  // `devices/{id}`
  double device_seconds = 0;
  int64_t operations = 0;
};

struct QuotaUsage {
  std::string name;  // `array-bytes`, `operations`, ...
  int64_t used = 0;
  std::optional<int64_t> limit;  // nullopt: unlimited
};

// Use of the caller's tenant since `start_time`.
struct Usage {
  std::string tenant;  // `tenants/{tenant}`
  std::chrono::system_clock::time_point start_time, time;
  double device_seconds = 0;
  int64_t upload_bytes = 0, download_bytes = 0;
  double array_byte_seconds = 0;
  int64_t operations = 0, operations_failed = 0;
  int64_t jobs = 0;
  std::vector<DeviceUsage> devices;
  std::vector<QuotaUsage> quotas;
};

}  // namespace stride
