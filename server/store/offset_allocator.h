#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/base/block_pool.h"

namespace stride::store {

// Best-fit allocation of byte ranges within one arena; neighbours merge when freed. Touches no
// memory. Not thread-safe.
class OffsetAllocator {
 public:
  // Every block starts at a multiple of this: enough for 16-byte device loads, cuBLAS and cache
  // lines alike.
  static constexpr uint64_t kAlignment = 256;

  explicit OffsetAllocator(uint64_t size);

  // nullopt when no gap is large enough. A size of 0 takes one alignment unit, so that every block
  // has an address of its own.
  std::optional<uint64_t> Allocate(uint64_t size);
  // Takes a given range, as an earlier Allocate of `size` did; false when any of it is taken or not
  // there.
  bool Reserve(uint64_t offset, uint64_t size);
  // `offset` must have come from Allocate or Reserve.
  void Free(uint64_t offset);

  // Bytes that a block of `size` takes.
  static uint64_t Rounded(uint64_t size);
  // [begin, end) that is free once the block at `offset` is freed too.
  std::pair<uint64_t, uint64_t> FreeAround(uint64_t offset) const;

  bool empty() const { return used_.empty(); }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t largest_gap() const;

 private:
  using Gap = std::pair<const uint64_t, uint64_t>;
  using Gaps = std::map<uint64_t, uint64_t, std::less<uint64_t>, PoolAllocator<Gap>>;
  using SizeAndOffset = std::pair<uint64_t, uint64_t>;

  void AddGap(uint64_t offset, uint64_t size);
  void RemoveGap(Gaps::iterator gap);
  // What becomes of a gap whose edge moved. Takes and gives back no memory, as most blocks do that
  // are taken from a gap or merge with one.
  void MoveGap(Gaps::iterator gap, uint64_t offset, uint64_t size);

  Gaps gaps_;  // offset -> size
  std::set<SizeAndOffset, std::less<SizeAndOffset>, PoolAllocator<SizeAndOffset>> gaps_by_size_;
  absl::flat_hash_map<uint64_t, uint64_t> used_;  // offset -> size
  uint64_t used_bytes_ = 0;
};

}  // namespace stride::store
