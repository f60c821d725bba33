// How an array is spread over several devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stride {

struct Sharding {
  // The axis that is split, as by numpy.array_split, in [-rank, rank).
  int32_t axis = 0;
  // Instead of a split: every device has the whole array.
  bool replicated = false;
  // Devices in the order of their parts; empty: all serving devices of the kind that the daemon
  // prefers.
  std::vector<std::string> devices;

  bool operator==(const Sharding&) const = default;
};

}  // namespace stride
