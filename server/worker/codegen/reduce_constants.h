#pragma once

#include <cstdint>

// Sizes on which the reductions' text and their launchers agree.
namespace stride::codegen {

// A partial result in scratch: a value of at most 16 bytes and an index.
inline constexpr int kPartialBytes = 32;

// CUDA. 256 threads hold 8 KiB of shared memory at most.
inline constexpr uint32_t kReduceThreads = 256;
inline constexpr uint32_t kColumnThreads =
    32;                                     // along a contiguous kept axis: one transaction a warp
inline constexpr int64_t kMostInPack = 16;  // elements that a thread loads at once, at most
// All resident at once: the text takes some 36 registers a thread. More would be a second wave.
inline constexpr int kReduceBlocksPerMultiprocessor = 6;
inline constexpr int64_t kLeastPerThread =
    16;  // elements that make a further split worth its second pass

// CPU.
// Kept columns walked together: a page of float32 in a row, and their accumulators stay in the
// first cache.
inline constexpr int64_t kColumnGroup = 1024;
inline constexpr int64_t kCpuChunk = 1 << 16;  // elements of one part of a row
inline constexpr int64_t kCpuChunkRows = 512;  // of a column, at least
inline constexpr int64_t kEnoughGroups = 256;  // results (or groups) from which nothing is split

}  // namespace stride::codegen
