#include <chrono>
#include <cstdio>

#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"

namespace stride::cli {
namespace {

// Seconds since the epoch, 1970.
Json ToJson(std::chrono::system_clock::time_point time) {
  return Json::Number(std::chrono::duration<double>(time.time_since_epoch()).count());
}

Json ToJson(const Usage& usage) {
  std::vector<Json> devices, quotas;
  for (const auto& device : usage.devices) {
    devices.push_back(Json::Object({{"device", Json::String(device.device)},
                                    {"device_seconds", Json::Number(device.device_seconds)},
                                    {"operations", Json::Integer(device.operations)}}));
  }
  for (const auto& quota : usage.quotas) {
    quotas.push_back(
        Json::Object({{"name", Json::String(quota.name)},
                      {"used", Json::Integer(quota.used)},
                      {"limit", quota.limit ? Json::Integer(*quota.limit) : Json::Null()}}));
  }
  return Json::Object({{"tenant", Json::String(usage.tenant)},
                       {"start_time", ToJson(usage.start_time)},
                       {"time", ToJson(usage.time)},
                       {"device_seconds", Json::Number(usage.device_seconds)},
                       {"upload_bytes", Json::Integer(usage.upload_bytes)},
                       {"download_bytes", Json::Integer(usage.download_bytes)},
                       {"array_byte_seconds", Json::Number(usage.array_byte_seconds)},
                       {"operations", Json::Integer(usage.operations)},
                       {"operations_failed", Json::Integer(usage.operations_failed)},
                       {"jobs", Json::Integer(usage.jobs)},
                       {"devices", Json::Array(devices)},
                       {"quotas", Json::Array(quotas)}});
}

void Print(const Usage& usage) {
  const auto seconds = std::chrono::duration<double>(usage.time - usage.start_time).count();
  std::printf("%s, over %.0f s\n", usage.tenant.c_str(), seconds);
  std::printf("  device time    %.3f s\n", usage.device_seconds);
  for (const auto& device : usage.devices) {
    std::printf("    %-24s %.3f s, %lld operations\n", device.device.c_str(), device.device_seconds,
                static_cast<long long>(device.operations));
  }
  std::printf("  received       %s\n  sent           %s\n",
              FormatBytes(static_cast<double>(usage.upload_bytes)).c_str(),
              FormatBytes(static_cast<double>(usage.download_bytes)).c_str());
  std::printf("  arrays         %s hours\n", FormatBytes(usage.array_byte_seconds / 3600).c_str());
  std::printf("  operations     %lld, of which %lld failed; %lld jobs\n",
              static_cast<long long>(usage.operations),
              static_cast<long long>(usage.operations_failed), static_cast<long long>(usage.jobs));
  for (const auto& quota : usage.quotas) {
    const std::string limit = quota.limit ? std::to_string(*quota.limit) : "unlimited";
    std::printf("  %-14s %lld of %s\n", quota.name.c_str(), static_cast<long long>(quota.used),
                limit.c_str());
  }
}

Result<void> Run(Context& context) {
  auto client = context.Connect(/*keeps_state=*/true);
  if (!client) return client.error();
  auto usage = (*client)->GetUsage(context.Call());
  if (!usage) return usage.error();
  if (context.json()) {
    std::printf("%s\n", ToJson(*usage).text().c_str());
  } else {
    Print(*usage);
  }
  return {};
}

}  // namespace

const Command& UsageCommand() {
  static const Command kCommand = {.name = "usage",
                                   .summary = "the use of your tenant, and its quotas",
                                   .usage = "",
                                   .run = Run};
  return kCommand;
}

}  // namespace stride::cli
