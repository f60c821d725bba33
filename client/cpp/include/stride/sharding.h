// How an array is spread over several devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stride {

struct Sharding {
  // Axis that is split, as numpy.array_split does, in [-rank, rank).
  int32_t axis = 0;
  // In place of a split: every device holds the whole.
  bool replicated = false;
  // Devices in the order of their parts; empty: all that serve of the kind that the daemon prefers.
  std::vector<std::string> devices;

  bool operator==(const Sharding&) const = default;
};

}  // namespace stride
