#include <unistd.h>

#include <cstdio>

#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"

namespace stride::cli {
namespace {

// Formats of optional readings.
std::string Percent(const std::optional<double>& ratio) {
  if (!ratio) return "-";
  char text[16];
  std::snprintf(text, sizeof(text), "%.0f%%", *ratio * 100);
  return text;
}

std::string Whole(const std::optional<double>& value, const char* unit) {
  if (!value) return "-";
  char text[24];
  std::snprintf(text, sizeof(text), "%.0f%s", *value, unit);
  return text;
}

std::string Memory(const DeviceSample& sample) {
  if (!sample.memory_used_bytes) return "-";
  std::string text = FormatBytes(static_cast<double>(*sample.memory_used_bytes));
  if (sample.memory_total_bytes)
    text += " / " + FormatBytes(static_cast<double>(*sample.memory_total_bytes));
  return text;
}

void PrintHeader(bool color) {
  std::printf("%s%-46s %5s %22s %6s %7s %10s %6s %9s %8s %6s %10s %10s %7s%s\n",
              color ? "\033[1m" : "", "DEVICE", "UTIL", "MEMORY", "TEMP", "POWER", "ARRAYS",
              "QUEUE", "WAIT", "DONE", "FAILED", "UP", "DOWN", "WORKERS", color ? "\033[0m" : "");
}

void PrintSample(const DeviceSample& s) {
  std::printf("%-46s %5s %22s %6s %7s %10s %6d %8.2fs %8lld %6lld %10s %10s %7d\n",
              s.device.c_str(), Percent(s.utilization_ratio).c_str(), Memory(s).c_str(),
              Whole(s.temperature_celsius, "C").c_str(), Whole(s.power_watts, "W").c_str(),
              FormatBytes(static_cast<double>(s.array_bytes)).c_str(), s.queue_depth,
              s.queue_seconds, static_cast<long long>(s.jobs_succeeded),
              static_cast<long long>(s.jobs_failed),
              FormatBytes(static_cast<double>(s.upload_bytes)).c_str(),
              FormatBytes(static_cast<double>(s.download_bytes)).c_str(), s.num_workers);
}

Json ToJson(const DeviceSample& s) {
  std::vector<std::pair<std::string, Json>> members = {{"device", Json::String(s.device)}};
  const auto real = [&](const char* name, const std::optional<double>& value) {
    if (value) members.emplace_back(name, Json::Number(*value));
  };
  const auto whole = [&](const char* name, const std::optional<int64_t>& value) {
    if (value) members.emplace_back(name, Json::Integer(*value));
  };
  real("time", std::chrono::duration<double>(s.time.time_since_epoch()).count());
  real("utilization_ratio", s.utilization_ratio);
  real("memory_utilization_ratio", s.memory_utilization_ratio);
  whole("memory_used_bytes", s.memory_used_bytes);
  whole("memory_total_bytes", s.memory_total_bytes);
  real("temperature_celsius", s.temperature_celsius);
  real("power_watts", s.power_watts);
  real("power_limit_watts", s.power_limit_watts);
  whole("sm_clock_hertz", s.sm_clock_hertz);
  whole("memory_clock_hertz", s.memory_clock_hertz);
  whole("arena_bytes", s.arena_bytes);
  whole("array_bytes", s.array_bytes);
  whole("queue_depth", s.queue_depth);
  real("queue_seconds", s.queue_seconds);
  real("busy_seconds", s.busy_seconds);
  whole("jobs_succeeded", s.jobs_succeeded);
  whole("jobs_failed", s.jobs_failed);
  whole("upload_bytes", s.upload_bytes);
  whole("download_bytes", s.download_bytes);
  whole("num_workers", s.num_workers);
  whole("worker_restarts", s.worker_restarts);
  return Json::Object(members);
}

Result<void> Run(Context& context) {
  WatchOptions watch;
  if (const auto text = context.line().Value("interval")) {
    const auto time = ParseTime(*text);
    if (!time)
      return UsageError(TopCommand(), "--interval " + *text + " is not a time such as 500ms or 2s");
    watch.interval = std::chrono::duration_cast<std::chrono::milliseconds>(*time);
  }
  if (context.line().Has("once")) watch.max_samples = 1;
  if (!context.device().empty()) watch.devices = {context.device()};
  auto client = context.Connect();
  if (!client) return client.error();
  const bool live = isatty(STDOUT_FILENO) && watch.max_samples != 1 && !context.json();
  bool first = true;
  auto watched = (*client)->WatchDevices(
      watch,
      [&](const std::vector<DeviceSample>& samples) {
        if (context.json()) {
          std::vector<Json> items;
          for (const auto& sample : samples) items.push_back(ToJson(sample));
          std::printf("%s\n", Json::Array(items).text().c_str());
        } else {
          // A terminal shows one table that is redrawn; other outputs get one line per sample.
          if (live) std::fputs("\033[H\033[2J", stdout);
          if (live || first) PrintHeader(context.color());
          for (const auto& sample : samples) PrintSample(sample);
        }
        first = false;
        return std::fflush(stdout) == 0;
      },
      context.Call());
  // Ctrl-C is the regular end of this command.
  if (!watched && watched.error().code == Code::kCancelled && context.cancellation().cancelled())
    return {};
  return watched;
}

}  // namespace

const Command& TopCommand() {
  static const Command kCommand = {
      .name = "top",
      .summary = "watch how busy the devices are",
      .usage = "[--interval TIME] [--once]",
      .options = {{"interval", 0, "TIME", "time between samples, 50ms to 1h (default 1s)"},
                  {"once", 0, "", "one sample, then end"},
                  {"device", 0, "DEVICE", "this device alone"}},
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
