// The daemon's configuration file: refused with a message, or within its bounds.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/main/command_line.h"
#include "tests/fuzz/driver/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using stride::fuzz::Require;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto assignments = stride::ParseConfigFile(text);
  if (!assignments.ok()) {
    Require(absl::IsInvalidArgument(assignments.status()), "an error that is not the file's");
    return 0;
  }
  stride::Config config;
  absl::Status status = stride::Assign(*assignments, &config);
  if (!status.ok()) {
    Require(absl::IsInvalidArgument(status), "an error that is not the file's");
    return 0;
  }
  Require(config.max_threads >= 8 && config.max_connections >= 1 && config.max_sessions >= 1,
          "a limit");
  Require(config.device_memory_share > 0 && config.device_memory_share <= 1, "a share");
  Require(config.session_ttl > absl::ZeroDuration() && config.kill_grace >= absl::ZeroDuration(),
          "a time");
  for (int threads : config.cpu_devices) Require(threads >= 0, "negative threads");
  return 0;
}
