#pragma once

#include <cstdint>

// Sizes on which the reductions' text and their launchers agree.
namespace stride::codegen {

// A partial result in scratch, at most: complex128 moments.
inline constexpr int kPartialBytes = 48;

// CUDA. 256 threads hold 8 KiB of shared memory at most.
inline constexpr uint32_t kReduceThreads = 256;
inline constexpr uint32_t kColumnThreads =
    32;                                     // along a contiguous kept axis: one transaction a warp
inline constexpr int64_t kMostInPack = 16;  // elements that a thread loads at once, at most
// All resident at once: the text takes some 36 registers a thread. More would be a second wave.
inline constexpr int kReduceBlocksPerMultiprocessor = 6;
// Blocks that come in fewer waves than this are split into parts, so that there are so many waves,
// as long as a part has so many elements (128 KiB of float32 take some 25 us, a part's count and
// its partial result about one): on an H200 2,500 rows of 300,000 are read at 4,430 instead of
// 4,280 GB/s, 800 rows at 4,190 instead of 3,440; more rows, or shorter ones, gain nothing or lose.
inline constexpr int kReduceFewWaves = 4;
inline constexpr int kReduceWaves = 12;
inline constexpr int64_t kLeastInPart = 1 << 15;
// So few blocks, of a wave, are split into parts of one size that fill just one wave.
inline constexpr int64_t kReduceFewBlocks = 8;
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
