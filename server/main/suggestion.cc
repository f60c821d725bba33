#include "server/main/suggestion.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stride {
namespace {

// Letters to insert, delete or replace.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Suggest(std::string_view text, const std::vector<std::string>& words) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, text.size() / 3) + 1;
  for (const std::string& word : words) {
    size_t distance = EditDistance(text, word);
    if (distance < best_distance) {
      best_distance = distance;
      best = word;
    }
  }
  return best;
}

}  // namespace stride
