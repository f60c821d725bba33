#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stride {

// Limit per task in bytes; CUDA's buffer for printf has this size by default.
inline constexpr size_t kMaxPrintedBytes = 1 << 20;
// Limit per packet from a worker in bytes.
inline constexpr size_t kMaxPrintedPiece = 64 << 10;

// Text that kernels printed, and the number of lines dropped after it for lack of room.
struct PrintedText {
  std::string text;
  uint64_t dropped_lines = 0;

  bool empty() const { return text.empty() && dropped_lines == 0; }
  // Appends the part of `more` that fits within `limit` bytes of `text`, in whole lines, and counts
  // the other lines. After a dropped line nothing is appended, so that the text has no gap.
  void Append(std::string_view more, uint64_t more_dropped, size_t limit);
  // Cuts the present text to `limit` bytes in the same way.
  void Truncate(size_t limit);
};

}  // namespace stride
