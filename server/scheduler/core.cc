#include "server/scheduler/core.h"

#include <string>
#include <utility>
#include <vector>

#include "server/scheduler/recorder.h"

namespace stride::scheduler {
namespace {

std::vector<std::string> IdsOf(const broker::Broker& broker, const wire::DeviceDescription& memory,
                               const wire::DeviceDescription& disk) {
  std::vector<std::string> ids = DeviceIds(broker);
  ids.push_back(memory.id());
  ids.push_back(disk.id());
  return ids;
}

}  // namespace

Core::Core(EngineOptions options, broker::Broker* broker)
    : options(std::move(options)),
      broker(broker),
      memory_description(DescribePlace("spill:memory", this->options.spill_memory_bytes, true)),
      disk_description(DescribePlace("spill:disk", this->options.spill_disk_bytes, false)),
      spaces(IdsOf(*broker, memory_description, disk_description)),
      recorder(std::make_unique<Recorder>(this)) {}

Core::~Core() = default;

}  // namespace stride::scheduler
