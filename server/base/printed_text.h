#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stride {

// Bytes of one task; CUDA's buffer for printf has as much by default.
inline constexpr size_t kMaxPrintedBytes = 1 << 20;
// Bytes of one packet from a worker.
inline constexpr size_t kMaxPrintedPiece = 64 << 10;

// Text that kernels printed, and how many lines after it were left out for lack of room.
struct PrintedText {
  std::string text;
  uint64_t dropped_lines = 0;

  bool empty() const { return text.empty() && dropped_lines == 0; }
  // Appends what fits within `limit` bytes of `text`, as whole lines, and counts the rest. Once a
  // line was left out nothing more is appended: the text has no gap within.
  void Append(std::string_view more, uint64_t more_dropped, size_t limit);
  // The same for text that is there already.
  void Truncate(size_t limit);
};

}  // namespace stride
