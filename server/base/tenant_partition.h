#pragma once

#include <cstdint>
#include <cstring>

#include "server/base/ids.h"

namespace stride {

// Number of tenant partitions (lock striping): data per tenant is stored by partition, each with
// its own lock.
inline constexpr int kNumTenantPartitions = 64;

// The tenant's partition. The same in all processes and versions, since journals are split by it
// (recovery/journals.h). Uses the first and the last bytes of the name, where names differ: each
// operation calls this several times.
inline int PartitionOf(const TenantId& tenant) {
  const char* const name = tenant.value.data();
  const size_t size = tenant.value.size();
  uint64_t first = size, last = 0;
  if (size >= 8) {
    std::memcpy(&first, name, 8);
    std::memcpy(&last, name + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(&first, name, 4);
    std::memcpy(&last, name + size - 4, 4);
  } else {
    for (size_t i = 0; i < size; ++i) last = last << 8 | static_cast<unsigned char>(name[i]);
  }
  // Fibonacci hashing (D. Knuth, The Art of Computer Programming 3, 6.4): by 2^64 over the golden
  // ratio.
  const uint64_t hash = (first * 0x9e3779b97f4a7c15 ^ (last + size)) * 0x9e3779b97f4a7c15;
  return static_cast<int>(hash >> 58);
}
static_assert(kNumTenantPartitions == 1 << 6);

// The partition's bit in a set of partitions.
constexpr uint64_t PartitionBit(int partition) { return uint64_t{1} << partition; }

}  // namespace stride
