#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stride::scheduler {

// RESOURCE_EXHAUSTED: the device with this id has no memory for so many bytes. What is more than
// its `limit` never fits, so that a client is not asked to try again. `scratch` of `size` is what
// the operation works in beside its arrays.
absl::Status OutOfMemory(const std::string& device, uint64_t size, uint64_t limit,
                         uint64_t scratch = 0);

}  // namespace stride::scheduler
