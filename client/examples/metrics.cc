// The metrics of NVDashboard, with queues and jobs.
#include <cstdio>

#include "client/examples/demo.h"

namespace stride::demo {

void ShowMetrics(Demo& demo) {
  std::printf("\nLive metrics (stride top shows them as long as you like)\n");
  int rounds = 0;
  const auto watched = demo.client().WatchDevices(
      {.interval = std::chrono::milliseconds(200), .max_samples = 3},
      [&](const std::vector<DeviceSample>& samples) {
        ++rounds;
        for (const DeviceSample& s : samples) {
          std::string line = Text("  %-24.24s", s.device.c_str());
          if (s.utilization_ratio) line += Text("  busy %3.0f%%", *s.utilization_ratio * 100);
          if (s.memory_used_bytes)
            line +=
                Text("  memory %.2f GiB", static_cast<double>(*s.memory_used_bytes) / (1 << 30));
          if (s.temperature_celsius) line += Text("  %.0f C", *s.temperature_celsius);
          if (s.power_watts) line += Text("  %.0f W", *s.power_watts);
          line += Text(
              "  queue %d  arrays %.1f MiB  ran %.2f s  jobs %lld good, %lld failed  up %.1f MiB  "
              "down %.1f MiB",
              s.queue_depth, static_cast<double>(s.array_bytes) / (1 << 20), s.busy_seconds,
              static_cast<long long>(s.jobs_succeeded), static_cast<long long>(s.jobs_failed),
              static_cast<double>(s.upload_bytes) / (1 << 20),
              static_cast<double>(s.download_bytes) / (1 << 20));
          std::printf("%s\n", line.c_str());
        }
        return true;
      });
  demo.Run("three rounds of samples", [&](Phases&) -> Result<Check> {
    if (!watched) return watched.error();
    return Check{rounds == 3, Text("%d rounds came", rounds)};
  });
}

}  // namespace stride::demo
