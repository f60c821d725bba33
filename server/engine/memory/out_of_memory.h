#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stride::engine {

// RESOURCE_EXHAUSTED: the device with this id has no memory for so many bytes. A size above its
// `limit` never fits, so the error asks for no retry. `scratch` of `size` is the work memory of
// the operation, without its arrays.
absl::Status OutOfMemory(const std::string& device, uint64_t size, uint64_t limit,
                         uint64_t scratch = 0);

}  // namespace stride::engine
