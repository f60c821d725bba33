#include "server/store/range_set.h"

#include <algorithm>

namespace stride::store {

void RangeSet::Add(int64_t begin, int64_t end) {
  if (begin >= end) return;
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
  while (it != ranges_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = ranges_.erase(it);
  }
  ranges_[begin] = end;
}

bool RangeSet::IsApart(int64_t begin, int64_t end) const {
  if (begin >= end) return false;
  auto next = ranges_.upper_bound(end);  // the first range that begins after it
  return next == ranges_.begin() || std::prev(next)->second < begin;
}

bool RangeSet::Covers(int64_t size) const {
  if (size == 0) return true;
  return ranges_.size() == 1 && ranges_.begin()->first == 0 && ranges_.begin()->second >= size;
}

}  // namespace stride::store
