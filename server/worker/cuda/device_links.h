#pragma once

#include <vector>

#include "server/wire/worker.pb.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// The links between these devices, in each direction: whether one can map the other's memory, and
// how fast it then reads it, by a timed copy. Contexts are made for that and left again; for a host
// of eight devices this takes a second or two, and no measurement begins after that time.
std::vector<wire::Link> FindLinks(const Driver& driver,
                                  const std::vector<wire::DeviceDescription>& devices);

}  // namespace stride::cuda
