#pragma once

#include <cstdint>
#include <map>

namespace stride::store {

// Sorted, merged half-open ranges of bytes: the part of an upload that has arrived.
class RangeSet {
 public:
  void Add(int64_t begin, int64_t end);
  // Whether it would become another range, instead of extending existing ones.
  bool IsApart(int64_t begin, int64_t end) const;
  // Whether [0, size) is covered.
  bool Covers(int64_t size) const;
  const std::map<int64_t, int64_t>& ranges() const { return ranges_; }  // begin -> end

 private:
  std::map<int64_t, int64_t> ranges_;
};

}  // namespace stride::store
