#include "server/base/printed_text.h"

#include <algorithm>
#include <utility>

namespace stride {
namespace {

// The last line may lack its newline.
uint64_t NumLines(std::string_view text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return static_cast<uint64_t>(ends) + (!text.empty() && text.back() != '\n' ? 1 : 0);
}

}  // namespace

void PrintedText::Append(std::string_view more, uint64_t more_dropped, size_t limit) {
  const size_t room = limit > text.size() ? limit - text.size() : 0;
  size_t fits = more.size();
  if (dropped_lines > 0) {
    fits = 0;
  } else if (fits > room) {
    const size_t end = more.substr(0, room).rfind('\n');
    fits = end == std::string_view::npos ? 0 : end + 1;
  }
  text.append(more.data(), fits);
  dropped_lines += NumLines(more.substr(fits)) + more_dropped;
}

void PrintedText::Truncate(size_t limit) {
  if (text.size() <= limit) return;
  const std::string whole = std::move(text);
  const uint64_t dropped = std::exchange(dropped_lines, 0);
  text.clear();
  Append(whole, dropped, limit);
}

}  // namespace stride
