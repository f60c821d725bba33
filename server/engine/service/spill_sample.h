#pragma once

#include <cstdint>

namespace stride::engine {

// Data that was evicted from full devices.
struct SpillSample {
  // Blocks now in host memory and in files, and the arenas that contain them.
  int64_t memory_bytes = 0;
  int64_t memory_arena_bytes = 0;
  int64_t disk_bytes = 0;
  int64_t disk_arena_bytes = 0;
  // Totals since the start.
  int64_t spilled_bytes = 0;   // copied off a device, or from memory to a file
  int64_t returned_bytes = 0;  // copied back to a device
  int64_t dropped_bytes = 0;   // copies deleted because another copy exists
  int64_t looked_at = 0;       // buffers examined during the choice of victims
};

}  // namespace stride::engine
