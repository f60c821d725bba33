#pragma once

#include "server/wire/worker.pb.h"

namespace stride::cpu {

// The machine as one CPU device, from which the daemon creates the configured devices.
wire::DeviceList ListDevices();

}  // namespace stride::cpu
