#include "server/store/offset_allocator.h"

#include <algorithm>

namespace stride::store {

OffsetAllocator::OffsetAllocator(uint64_t size) {
  if (size > 0) AddGap(0, size);
}

uint64_t OffsetAllocator::Rounded(uint64_t size) {
  return (std::max<uint64_t>(size, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

std::pair<uint64_t, uint64_t> OffsetAllocator::FreeAround(uint64_t offset) const {
  auto block = used_.find(offset);
  if (block == used_.end()) return {offset, offset};
  uint64_t begin = offset, end = offset + block->second;
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == end) end += next->second;
  if (next != gaps_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == begin) begin = previous->first;
  }
  return {begin, end};
}

std::optional<uint64_t> OffsetAllocator::Allocate(uint64_t size) {
  uint64_t need = Rounded(size);
  auto best = gaps_by_size_.lower_bound({need, 0});
  if (best == gaps_by_size_.end()) return std::nullopt;
  auto [gap_size, offset] = *best;
  if (gap_size > need) {
    MoveGap(gaps_.find(offset), offset + need, gap_size - need);
  } else {
    RemoveGap(gaps_.find(offset));
  }
  used_[offset] = need;
  used_bytes_ += need;
  return offset;
}

bool OffsetAllocator::Reserve(uint64_t offset, uint64_t size) {
  if (size > UINT64_MAX - kAlignment || offset % kAlignment != 0) return false;
  uint64_t need = Rounded(size);
  auto gap = gaps_.upper_bound(offset);
  if (gap == gaps_.begin()) return false;
  --gap;
  auto [begin, gap_size] = *gap;
  uint64_t before = offset - begin;
  if (before > gap_size || gap_size - before < need) return false;
  RemoveGap(gap);
  if (before > 0) AddGap(begin, before);
  if (gap_size - before > need) AddGap(offset + need, gap_size - before - need);
  used_[offset] = need;
  used_bytes_ += need;
  return true;
}

void OffsetAllocator::Free(uint64_t offset) {
  auto block = used_.find(offset);
  if (block == used_.end()) return;
  uint64_t size = block->second;
  used_bytes_ -= size;
  used_.erase(block);
  auto next = gaps_.lower_bound(offset);
  auto previous = next == gaps_.begin() ? gaps_.end() : std::prev(next);
  const bool joins_next = next != gaps_.end() && next->first == offset + size;
  const bool joins_previous =
      previous != gaps_.end() && previous->first + previous->second == offset;
  if (joins_next) size += next->second;
  if (joins_previous) {
    if (joins_next) RemoveGap(next);
    MoveGap(previous, previous->first, previous->second + size);
  } else if (joins_next) {
    MoveGap(next, offset, size);
  } else {
    AddGap(offset, size);
  }
}

uint64_t OffsetAllocator::largest_gap() const {
  return gaps_by_size_.empty() ? 0 : gaps_by_size_.rbegin()->first;
}

void OffsetAllocator::AddGap(uint64_t offset, uint64_t size) {
  gaps_[offset] = size;
  gaps_by_size_.insert({size, offset});
}

void OffsetAllocator::RemoveGap(Gaps::iterator gap) {
  gaps_by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

void OffsetAllocator::MoveGap(Gaps::iterator gap, uint64_t offset, uint64_t size) {
  auto by_size = gaps_by_size_.extract({gap->second, gap->first});
  by_size.value() = {size, offset};
  gaps_by_size_.insert(std::move(by_size));
  auto by_offset = gaps_.extract(gap);
  by_offset.key() = offset;
  by_offset.mapped() = size;
  gaps_.insert(std::move(by_offset));
}

}  // namespace stride::store
