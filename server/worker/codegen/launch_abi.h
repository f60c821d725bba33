#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/wire/plan.pb.h"

// What the emitted code (emit.h) takes when it is launched: one block of 8-byte words, plain data.
// A CUDA kernel takes the block by value as its first parameter, a CPU function by pointer. Hosts
// fill it with the Pack functions and need not know what is inside; the layout is written down here
// since the emitted text declares the same as structs. Elementwise and reduce kernels take an
// EndMark as well. Every address is of the operand's FIRST ELEMENT (arena base + Operand.offset);
// all strides are in bytes.
//
//   elementwise   count, tile axis | extents[rank] | for each operand, inputs then outputs:
//   address, strides[rank] | to 16 bytes | scalars[] of 16 bytes reduce        kept_count,
//   reduced_count, splits, chunk, scratch, arrivals, first_split | extents[kept +
//                 reduced] | for each input: address, strides[kept + reduced]
//                 | output address, strides[kept] | to 16 bytes | map scalars[] of 16 bytes |
//                 finish scalars[] of 16 bytes
//   matmul        m, n, k, batch_count, batch_rank | batch_extents[kMaxRank] | for left, right,
//   output: address, strides[kMaxRank] (batch axes from 0;
//                 row and column are the last two)
//
// Entry points and how to launch them:
//   elementwise   CUDA kElementwiseEntry, shape ElementwiseShape()   CPU kRunEntry, any split of
//   [0, count) into ranges, in any order and on any threads
//   reduce        CUDA kReduceEntry with PlanReduceCuda().first: one pass, in which the last block
//                 of those that share results combines what all of them found
//                 CPU kReduceEntry over any split of [0, num_items), then, when two_passes and all
//                 of those are done, kReduceFinishEntry over any split of [0, kept_count). The
//                 result does not depend on how the ranges are split.
//   matmul        CUDA MatmulEntry(), shape MatmulShape()            CPU kRunEntry over any split
//   of [0, batch_count * m) (rows of the output)
// A launch whose product of (kept) extents is 0 has nothing to do and must not be launched.
namespace stride::codegen {

inline constexpr int kMaxRank = 32;
// So that a block stays below the 32,764 bytes of a CUDA kernel's parameters whatever the rank.
inline constexpr int kMaxOperands = 64;
inline constexpr int kMaxScalars = 256;
inline constexpr int kScalarSlotBytes = 16;

// CUDA: `extern "C" __global__ void NAME(const Launch[, const EndMark])`. CPU: `extern "C" void
// NAME(const Launch*, long long begin, long long end)`.
inline constexpr char kElementwiseEntry[] = "stride_elementwise";
inline constexpr char kRunEntry[] = "stride_run";
inline constexpr char kReduceEntry[] = "stride_reduce";
inline constexpr char kReduceFinishEntry[] = "stride_reduce_finish";
inline constexpr char kMatmulEntry[] = "stride_matmul";
inline constexpr char kSmallMatmulEntry[] = "stride_small_matmul";
inline constexpr char kByteMatmulEntry[] = "stride_byte_matmul";

// 8-byte words, aligned to 16 bytes by operator new.
using LaunchBlock = std::vector<uint64_t>;

// How a CUDA launch tells of its own end, which spares the stream a command behind it: the last
// block to end stores `value` at `word` when the host and every device see all that the launch has
// stored. The text declares the same (device/base.h).
struct EndMark {
  uint64_t word = 0;      // device address of 32 bits; 0: nobody asks
  uint64_t arrivals = 0;  // of a 32-bit counter, zero, which the launch leaves zero
  uint32_t value = 0;
};

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic, of each block
};

// How a reduction is cut up. Depends on the launch (and, CUDA, on the number of multiprocessors)
// alone, so that results repeat.
struct ReduceShape {
  int64_t splits = 1;  // parts of the reduced elements of one result
  int64_t chunk = 0;   // reduced elements of one part, but the last
  uint64_t scratch_bytes =
      0;  // device memory for partial results, 16-byte aligned, any content; 0 when one pass does
  bool two_passes = false;  // CPU
  LaunchShape first;        // CUDA
  // CUDA: a launch may make some splits alone, grid[1] from this one on; the launch that makes the
  // last of all splits combines them.
  int64_t first_split = 0;
  int64_t num_items = 0;   // CPU: the first pass covers [0, num_items)
  int64_t kept_count = 0;  // CPU: the second pass covers [0, kept_count)
};

// The axis along which an input's elements lie one after another, where that is not the last: a
// CUDA launch reads such inputs by tiles over both axes. -1: none.
int TileAxis(const wire::ElementwiseLaunch& launch);
// Rows and columns of a tile; shorter axes are not cut into tiles.
inline constexpr int kTileSide = 32;
// `addresses`: of the first element of each operand, inputs first, then outputs.
LaunchBlock PackElementwise(const wire::ElementwiseLaunch& launch,
                            absl::Span<const uint64_t> addresses);
LaunchShape ElementwiseShape(const wire::ElementwiseLaunch& launch);

ReduceShape PlanReduceCuda(const wire::ReduceLaunch& launch, int num_multiprocessors);
ReduceShape PlanReduceCpu(const wire::ReduceLaunch& launch);
// `arrivals_address`, CUDA: ReduceArrivals() counters of 32 bits, all zero, which the launch leaves
// zero; launches that share them must not overlap.
LaunchBlock PackReduce(const wire::ReduceLaunch& launch, const ReduceShape& shape,
                       absl::Span<const uint64_t> addresses, uint64_t scratch_address,
                       uint64_t arrivals_address = 0);
int ReduceArrivals(int num_multiprocessors);

LaunchBlock PackMatmul(const wire::MatmulLaunch& launch, uint64_t left, uint64_t right,
                       uint64_t output);
// kByteMatmulEntry where both factors are of bytes, else one of the other two: code of bytes has
// the former alone.
const char* MatmulEntry(const wire::MatmulLaunch& launch);
LaunchShape MatmulShape(const wire::MatmulLaunch& launch);
// Rows of output over all batches: what the CPU's kRunEntry covers.
int64_t MatmulRows(const wire::MatmulLaunch& launch);

// A routine (routines/*.h). Its phases run one after another, some of them several times; each time
// is a pass.
enum class PhaseKind { kThread, kBlock };
// `stride_phase0`: as kElementwiseEntry on CUDA, kRunEntry over any split of [0, items) on CPU.
std::string PhaseEntry(int phase);
inline constexpr int kRoutineThreads = 256;

struct RoutineTarget {
  int num_multiprocessors = 0;  // 0: a CPU device
  int num_threads = 1;          // of a CPU device
};
absl::Span<const PhaseKind> RoutinePhases(wire::RoutineCode::Routine routine,
                                          const RoutineTarget& target);
// The first phase of a sort of numbers, by radix.h on a GPU and by keyed.h on a CPU; -1 where a
// routine has none.
int FirstRadixPhase(wire::RoutineCode::Routine routine);
using RoutineOptions = google::protobuf::RepeatedField<int64_t>;
// Whether a GPU counts the elements of groups (tally.h), and whether it sorts elements by group.
bool CountsGroups(wire::RoutineCode::Routine routine, const RoutineOptions& options);
bool SortsGroups(wire::RoutineCode::Routine routine, const RoutineOptions& options);
struct RoutinePass {
  int phase = 0;
  int64_t items = 0;
  std::array<int64_t, 4> arguments = {};
};
struct RoutineShape {
  uint64_t scratch_bytes = 0;  // memory between passes, 16-byte aligned, any content
  // The launch block then points to a RoutineFault, zero before the first pass.
  bool may_fault = false;
  std::vector<RoutinePass> passes;  // none: nothing to do
};
RoutineShape PlanRoutine(const wire::RoutineLaunch& launch, const RoutineTarget& target);
LaunchShape PassShape(const wire::RoutineLaunch& launch, const RoutinePass& pass,
                      const RoutineTarget& target);
// Then SetPass before each pass. The block is
//   items, count, pass[4], scratch, fault | extents[rank] | for each operand: address,
//   strides[rank], own extents[], own strides[] (at least one each) | to 16 bytes | scalars[] of 16
LaunchBlock PackRoutine(const wire::RoutineLaunch& launch, absl::Span<const uint64_t> addresses,
                        uint64_t scratch_address, uint64_t fault_address);
void SetPass(const RoutinePass& pass, LaunchBlock* block);

}  // namespace stride::codegen
