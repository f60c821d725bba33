#include <algorithm>
#include <vector>

#include "client/cpp/src/bulk.h"

namespace stride::internal {
namespace {

constexpr int64_t kAlign = 1 << 20;
// Below this a second stream costs more than it gains.
constexpr int64_t kMinPart = 8 << 20;

}  // namespace

std::vector<Range> CutRanges(int64_t size, int max_parts) {
  const int64_t parts = std::clamp<int64_t>(size / kMinPart, 1, std::max(1, max_parts));
  const int64_t step = ((size + parts - 1) / parts + kAlign - 1) / kAlign * kAlign;
  std::vector<Range> ranges;
  for (int64_t begin = 0; begin < size; begin += step)
    ranges.push_back({begin, std::min(size, begin + step)});
  if (ranges.empty()) ranges.push_back({0, 0});
  return ranges;
}

}  // namespace stride::internal
