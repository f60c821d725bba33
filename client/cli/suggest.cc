#include "client/cli/suggest.h"

#include <algorithm>
#include <vector>

namespace stride::cli {
namespace {

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Suggest(std::string_view word, std::span<const std::string> candidates) {
  // More than one edit per three letters is another word. Words longer than any name skip the
  // quadratic table.
  if (word.size() > 40) return "";
  std::string best;
  size_t least = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(word, candidate);
    if (distance < least || (distance == least && best.empty() && distance < candidate.size())) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

}  // namespace stride::cli
