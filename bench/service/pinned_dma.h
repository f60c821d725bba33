// The floor under transfers to a GPU on the same host: its driver's own copies of pinned memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "bench/service/timing.h"

namespace stride::bench {

struct PinnedDma {
  Times up, down;
};

// Copies the bytes to memory of the first GPU and back, in this process, after pinning them.
// Nothing where there is no driver or no room.
std::optional<PinnedDma> MeasurePinnedDma(std::span<std::byte> bytes, int rounds);

}  // namespace stride::bench
