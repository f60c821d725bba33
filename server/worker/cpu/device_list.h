#pragma once

#include "server/wire/worker.pb.h"

namespace stride::cpu {

// The machine as one CPU device; the daemon makes of it the devices it was configured for.
wire::DeviceList ListDevices();

}  // namespace stride::cpu
