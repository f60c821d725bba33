#pragma once

#include <cstdint>
#include <map>

namespace stride::store {

// Sorted, merged half-open ranges of bytes: what has arrived of an upload.
class RangeSet {
 public:
  void Add(int64_t begin, int64_t end);
  // Whether it would add one more to those that are there, rather than become a part of them.
  bool IsApart(int64_t begin, int64_t end) const;
  // Whether [0, size) is covered.
  bool Covers(int64_t size) const;
  const std::map<int64_t, int64_t>& ranges() const { return ranges_; }  // begin -> end

 private:
  std::map<int64_t, int64_t> ranges_;
};

}  // namespace stride::store
