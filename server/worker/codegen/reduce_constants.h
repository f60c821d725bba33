#pragma once

#include <cstdint>

// Sizes shared by the reductions' text and their launchers.
namespace stride::codegen {

// Largest partial result in scratch: complex128 moments.
inline constexpr int kPartialBytes = 48;

// CUDA. 256 threads use at most 8 KiB of shared memory.
inline constexpr uint32_t kReduceThreads = 256;
inline constexpr uint32_t kColumnThreads =
    32;  // along a contiguous kept axis: one transaction per warp
inline constexpr int64_t kMostInPack = 16;  // most elements that a thread loads at once
// All resident at once: the code takes about 36 registers per thread. More would be a second wave.
inline constexpr int kReduceBlocksPerMultiprocessor = 6;
// Fewer waves than this are split into parts, up to kReduceWaves waves, as long as a part has
// kLeastInPart elements. (128 KiB of float32 take about 25 us, a part's count and partial result
// about one.) On an H200, 2,500 rows of 300,000 are read at 4,430 instead of 4,280 GB/s, 800 rows
// at 4,190 instead of 3,440; more or shorter rows gain nothing or lose.
inline constexpr int kReduceFewWaves = 4;
inline constexpr int kReduceWaves = 12;
inline constexpr int64_t kLeastInPart = 1 << 15;
// At most this many blocks, a part of a wave, are split into equal parts that fill one wave.
inline constexpr int64_t kReduceFewBlocks = 8;
inline constexpr int64_t kLeastPerThread =
    16;  // least elements per thread for which a further split is worth its second pass

// Kept columns walked together: a row's page of float32; their accumulators stay in the first-level
// cache.
inline constexpr int64_t kColumnGroup = 1024;
inline constexpr int64_t kCpuChunk = 1 << 16;  // elements of one part of a row
inline constexpr int64_t kCpuChunkRows = 512;  // fewest rows per part of a column
// with so many results (or groups) no result is split
inline constexpr int64_t kEnoughGroups = 256;

}  // namespace stride::codegen
