#include <cstdio>

#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"

namespace stride::cli {
namespace {

const char* StateName(Device::State state) {
  return state == Device::State::kServing      ? "SERVING"
         : state == Device::State::kNotServing ? "NOT_SERVING"
         : state == Device::State::kStarting   ? "STARTING"
                                               : "UNSPECIFIED";
}

Json ToJson(const Device& device) {
  return Json::Object({{"name", Json::String(device.name)},
                       {"kind", Json::String(device.kind)},
                       {"model", Json::String(device.model)},
                       {"index", Json::Integer(device.index)},
                       {"state", Json::String(StateName(device.state))},
                       {"state_reason", Json::String(device.state_reason)},
                       {"memory_total_bytes", Json::Integer(device.memory_total_bytes)},
                       {"num_compute_units", Json::Integer(device.num_compute_units)},
                       {"target", Json::String(device.target)},
                       {"pci_bus_id", Json::String(device.pci_bus_id)},
                       {"driver_version", Json::String(device.driver_version)}});
}

Result<void> Run(Context& context) {
  auto client = context.Connect();
  if (!client) return client.error();
  auto devices = context.ListTriedDevices(**client);
  if (!devices) return devices.error();
  if (context.json()) {
    std::vector<Json> items;
    for (const auto& device : *devices) items.push_back(ToJson(device));
    std::printf("%s\n", Json::Array(items).text().c_str());
    return {};
  }
  for (const auto& device : *devices) {
    std::printf("%-48s %-11s %-28s %10s  %5d units  %s\n", device.name.c_str(),
                StateName(device.state), device.model.c_str(),
                FormatBytes(static_cast<double>(device.memory_total_bytes)).c_str(),
                device.num_compute_units, device.target.c_str());
    if (!device.state_reason.empty()) std::printf("    %s\n", device.state_reason.c_str());
  }
  return {};
}

}  // namespace

const Command& DevicesCommand() {
  static const Command kCommand = {
      .name = "devices", .summary = "list the daemon's devices", .usage = "", .run = Run};
  return kCommand;
}

}  // namespace stride::cli
