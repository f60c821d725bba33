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

// Best-fit allocation of byte ranges within one arena; adjacent gaps merge when freed. Accesses no
// memory of the arena. Not thread-safe.
class OffsetAllocator {
 public:
  // Alignment of every block: enough for 16-byte device loads, cuBLAS and cache lines.
  static constexpr uint64_t kAlignment = 256;

  explicit OffsetAllocator(uint64_t size);

  // nullopt when no gap is large enough. A size of 0 takes one alignment unit, so that each block
  // has a distinct address.
  std::optional<uint64_t> Allocate(uint64_t size);
  // Takes a given range, like an earlier Allocate of `size`; false when any of it is taken or out
  // of range.
  bool Reserve(uint64_t offset, uint64_t size);
  // `offset` must have come from Allocate or Reserve.
  void Free(uint64_t offset);

  // Bytes that a block of `size` takes.
  static uint64_t Rounded(uint64_t size);
  // The free range [begin, end) that freeing the block at `offset` would create.
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
  // Updates a gap whose edge moved. Reuses its node, so that most allocations and frees touch no
  // heap.
  void MoveGap(Gaps::iterator gap, uint64_t offset, uint64_t size);

  Gaps gaps_;  // offset -> size
  std::set<SizeAndOffset, std::less<SizeAndOffset>, PoolAllocator<SizeAndOffset>> gaps_by_size_;
  absl::flat_hash_map<uint64_t, uint64_t> used_;  // offset -> size
  uint64_t used_bytes_ = 0;
};

}  // namespace stride::store
