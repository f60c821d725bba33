#include "server/engine/core/core.h"

namespace stride::engine {

Core::Core(EngineOptions options, broker::Broker* broker)
    : options(std::move(options)),
      broker(broker),
      memory_description(DescribePlace("spill:memory", this->options.spill_memory_bytes, true)),
      disk_description(DescribePlace("spill:disk", this->options.spill_disk_bytes, false)),
      spaces(DeviceIds(*broker), memory_description.id(), disk_description.id()) {}

}  // namespace stride::engine
