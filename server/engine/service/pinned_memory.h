#pragma once

#include <memory>
#include <string>

namespace stride::engine {

// A region, or the memory of a mapped array, pinned under `name` until RegionService::Release. `fd`
// stays open while `owner` exists.
struct PinnedMemory {
  std::shared_ptr<const void> owner;
  int fd = -1;
  std::string name;
};

}  // namespace stride::engine
