#pragma once

#include <memory>
#include <string>

namespace stride::scheduler {

// The region, or the memory of a mapped array, that a ticket was issued for. `fd` stays open while
// `owner` exists.
struct RedeemedRegion {
  std::shared_ptr<const void> owner;
  int fd = -1;
  std::string name;
};

}  // namespace stride::scheduler
