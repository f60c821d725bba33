#pragma once

#include <vector>

#include "server/wire/worker.pb.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// The links between these devices, in each direction: whether one can map the other's memory, and
// the measured rate of a copy. Creates contexts for the measurement and releases them. For a host
// of eight devices this takes a second or two, and no measurement begins after that time.
std::vector<wire::Link> FindLinks(const Driver& driver,
                                  const std::vector<wire::DeviceDescription>& devices);

}  // namespace stride::cuda
