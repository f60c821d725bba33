#include <algorithm>
#include <bit>

#include "server/ops/reduce_access.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/reduce_constants.h"

namespace stride::codegen {

static_assert(kPartialBytes == ops::kRecordBytes);
namespace {

struct Counts {
  int64_t kept = 1;
  int64_t reduced = 1;
  int64_t last_kept = 1;
};

Counts Count(const wire::ReduceLaunch& launch) {
  Counts counts;
  for (int64_t extent : launch.kept_extents()) counts.kept *= extent;
  for (int64_t extent : launch.reduced_extents()) counts.reduced *= extent;
  if (!launch.kept_extents().empty())
    counts.last_kept = launch.kept_extents(launch.kept_extents_size() - 1);
  return counts;
}

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Number of groups of neighbouring columns; one item combines a group.
int64_t ColumnGroups(const Counts& counts) {
  return counts.last_kept == 0
             ? counts.kept
             : counts.kept / counts.last_kept * DivideUp(counts.last_kept, kColumnGroup);
}

// Splits into `wanted` parts of at least `least` elements each.
void Split(ReduceShape& shape, const Counts& counts, int64_t wanted, int64_t least) {
  int64_t most = std::max<int64_t>(counts.reduced / least, 1);
  int64_t splits = std::clamp<int64_t>(wanted, 1, most);
  shape.chunk = std::max<int64_t>(DivideUp(counts.reduced, splits), 1);
  if (splits > 1) shape.chunk = DivideUp(shape.chunk, kMostInPack) * kMostInPack;
  shape.splits = std::max<int64_t>(DivideUp(counts.reduced, shape.chunk), 1);
  shape.two_passes = shape.splits > 1;
  if (shape.two_passes)
    shape.scratch_bytes = static_cast<uint64_t>(counts.kept * shape.splits) * kPartialBytes;
}

}  // namespace

ReduceShape PlanReduceCuda(const wire::ReduceLaunch& launch, int num_multiprocessors) {
  Counts counts = Count(launch);
  ReduceShape shape;
  shape.kept_count = counts.kept;
  uint32_t* block = shape.first.block;
  int64_t kept_per_block;
  if (ops::KeptContiguous(launch)) {
    block[0] = kColumnThreads;
    block[1] = kReduceThreads / kColumnThreads;
    kept_per_block = kColumnThreads;
  } else {
    // As many threads per row as have four elements each to combine.
    uint64_t useful = static_cast<uint64_t>(std::max<int64_t>(counts.reduced / 4, 1));
    block[0] = static_cast<uint32_t>(std::min<uint64_t>(std::bit_floor(useful), kReduceThreads));
    block[1] = kReduceThreads / block[0];
    kept_per_block = block[1];
  }
  int64_t blocks = std::max<int64_t>(DivideUp(counts.kept, kept_per_block), 1);
  const int64_t wave = int64_t{std::max(num_multiprocessors, 1)} * kReduceBlocksPerMultiprocessor;
  // One wave at most: a few extra blocks would run alone at the end, at a small part of the
  // memory's rate.
  int64_t wanted = std::max<int64_t>(wave / blocks, 1);
  if (blocks * kReduceFewBlocks > wave && blocks < kReduceFewWaves * wave) {
    // The last blocks would otherwise occupy a part of the device for a large part of the whole
    // time.
    const int64_t most = counts.reduced * kept_per_block / kLeastInPart;
    wanted = std::max(wanted, std::min(DivideUp(kReduceWaves * wave, blocks), most));
  }
  int64_t threads_along = ops::KeptContiguous(launch) ? block[1] : block[0];
  Split(shape, counts, wanted, threads_along * kLeastPerThread);
  shape.first.grid[0] = static_cast<uint32_t>(std::min<int64_t>(blocks, (int64_t{1} << 31) - 1));
  shape.first.grid[1] = static_cast<uint32_t>(shape.splits);
  return shape;
}

// Blocks are split only while there are fewer than PlanReduceCuda needs.
int ReduceArrivals(int num_multiprocessors) {
  return std::max(num_multiprocessors, 1) * kReduceBlocksPerMultiprocessor * kReduceFewWaves;
}

ReduceShape PlanReduceCpu(const wire::ReduceLaunch& launch) {
  const Counts counts = Count(ops::DecidingLaunch(launch));
  ReduceShape shape;
  shape.kept_count = counts.kept;
  bool columns = ops::KeptContiguous(launch);
  const int64_t groups = columns ? ColumnGroups(counts) : counts.kept;
  // Enough results keep all cores busy. Otherwise one result's elements are divided: rows into
  // parts of one size, columns into enough parts.
  int64_t wanted = 1;
  if (groups < kEnoughGroups) {
    wanted = columns ? DivideUp(kEnoughGroups, std::max<int64_t>(groups, 1))
                     : DivideUp(counts.reduced, kCpuChunk);
  }
  Split(shape, counts, wanted, columns ? kCpuChunkRows : kCpuChunk);
  // The inputs of computed elements may have shorter rows of columns.
  shape.num_items = (columns ? ColumnGroups(Count(launch)) : groups) * shape.splits;
  return shape;
}

}  // namespace stride::codegen
