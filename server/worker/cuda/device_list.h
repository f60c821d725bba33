#pragma once

#include <cuda.h>

#include "absl/status/statusor.h"
#include "server/wire/worker.pb.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// The devices of this machine; creates no context. The list's reason explains an empty list.
wire::DeviceList ListDevices();

absl::StatusOr<wire::DeviceDescription> DescribeDevice(const Driver& driver, int index);

}  // namespace stride::cuda
