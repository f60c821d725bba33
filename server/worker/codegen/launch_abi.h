#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/wire/plan.pb.h"

// Launch parameters of emitted code (emit.h): one block of 8-byte words, plain data. A CUDA kernel
// takes the block by value as its first parameter, a CPU function by pointer. Hosts fill it with
// the Pack functions and need not know its content. The layout is documented here since the emitted
// text declares the same as structs. Elementwise and reduce kernels take an EndMark as well.
// Addresses are those of an operand's FIRST ELEMENT (arena base + Operand.offset); all strides are
// in bytes.
//
//   elementwise   count, tile axis | extents[rank]
//                 | for each operand, inputs then outputs: address, strides[rank]
//                 | to 16 bytes | scalars[] of 16 bytes
//   reduce        kept_count, reduced_count, splits, chunk, scratch, arrivals, first_split
//                 | extents[kept + reduced] | for each input: address, strides[kept + reduced]
//                 | output address, strides[kept]
//                 | to 16 bytes | map scalars[] of 16 bytes | finish scalars[] of 16 bytes
//   matmul        m, n, k, batch_count, batch_rank | batch_extents[kMaxRank]
//                 | for left, right, output: address, strides[kMaxRank]
//                 (batch axes from 0; row and column are the last two)
//
// Entry points and how to launch them:
//   elementwise   CUDA: kElementwiseEntry with ElementwiseShape()
//                 CPU: kRunEntry over any split of [0, count), in any order, on any threads
//   reduce        CUDA: kReduceEntry with PlanReduceCuda().first: one pass; of the blocks that
//                 share results, the last to end combines their partial results
//                 CPU: kReduceEntry over any split of [0, num_items); with two_passes, then
//                 kReduceFinishEntry over any split of [0, kept_count). The result does not
//                 depend on the split.
//   matmul        CUDA: MatmulEntry() with MatmulShape()
//                 CPU: kRunEntry over any split of [0, batch_count * m), rows of the output
//
// Do not launch when the product of (kept) extents is 0.
namespace stride::codegen {

inline constexpr int kMaxRank = 32;
// Keeps a block of any rank below the 32,764 bytes of a CUDA kernel's parameters.
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

// How a CUDA launch signals its own end, which saves a command in the stream. The last block to end
// stores `value` at `word`, once all the launch's stores are visible to the host and all devices.
// The emitted text declares the same struct (device/base.h).
struct EndMark {
  uint64_t word = 0;      // device address of 32 bits; 0: no signal wanted
  uint64_t arrivals = 0;  // device address of a 32-bit counter, 0 before and after the launch
  uint32_t value = 0;
};

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic, per block
};

// How a reduction is split. Depends only on the launch (and, on CUDA, the number of
// multiprocessors), so that results repeat.
struct ReduceShape {
  int64_t splits = 1;  // parts of one result's reduced elements
  int64_t chunk = 0;   // reduced elements per part, except the last
  uint64_t scratch_bytes =
      0;  // device memory for partial results, 16-byte aligned, any content; 0 when one pass does
  bool two_passes = false;  // CPU
  LaunchShape first;        // CUDA
  // CUDA: a launch may compute some splits only, grid[1] of them from this one on; the launch with
  // the last split combines all of them.
  int64_t first_split = 0;
  int64_t num_items = 0;   // CPU: the first pass covers [0, num_items)
  int64_t kept_count = 0;  // CPU: the second pass covers [0, kept_count)
};

// The axis along which an input is contiguous, other than the last: a CUDA launch reads such inputs
// by tiles over both axes. -1: none.
int TileAxis(const wire::ElementwiseLaunch& launch);
// Rows and columns of a tile; shorter axes are not tiled.
inline constexpr int kTileSide = 32;
// `addresses`: first elements of the operands, inputs first, then outputs.
LaunchBlock PackElementwise(const wire::ElementwiseLaunch& launch,
                            absl::Span<const uint64_t> addresses);
LaunchShape ElementwiseShape(const wire::ElementwiseLaunch& launch);

ReduceShape PlanReduceCuda(const wire::ReduceLaunch& launch, int num_multiprocessors);
ReduceShape PlanReduceCpu(const wire::ReduceLaunch& launch);
// `arrivals_address`, CUDA: address of ReduceArrivals() counters of 32 bits, 0 before and after the
// launch; launches that share them must not overlap.
LaunchBlock PackReduce(const wire::ReduceLaunch& launch, const ReduceShape& shape,
                       absl::Span<const uint64_t> addresses, uint64_t scratch_address,
                       uint64_t arrivals_address = 0);
int ReduceArrivals(int num_multiprocessors);

LaunchBlock PackMatmul(const wire::MatmulLaunch& launch, uint64_t left, uint64_t right,
                       uint64_t output);
// kByteMatmulEntry where both factors are of bytes, else one of the other two: code of bytes has
// only the former.
const char* MatmulEntry(const wire::MatmulLaunch& launch);
LaunchShape MatmulShape(const wire::MatmulLaunch& launch);
// Rows of output over all batches, which the CPU's kRunEntry covers.
int64_t MatmulRows(const wire::MatmulLaunch& launch);

// A routine (routines/*.h). Its phases run one after another, some of them several times; each run
// is a pass.
enum class PhaseKind { kThread, kBlock };
// Entry `stride_phase0` etc.: launched like kElementwiseEntry on CUDA, or like kRunEntry over any
// split of [0, items) on CPU.
std::string PhaseEntry(int phase);
inline constexpr int kRoutineThreads = 256;

struct RoutineTarget {
  int num_multiprocessors = 0;  // 0: a CPU device
  int num_threads = 1;          // threads of a CPU device
};
absl::Span<const PhaseKind> RoutinePhases(wire::RoutineCode::Routine routine,
                                          const RoutineTarget& target);
// The first phase of a sort of numbers, by radix.h on a GPU and by keyed.h on a CPU; -1: the
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
// Packs the block; call SetPass before each pass. Layout:
//   items, count, pass[4], scratch, fault | extents[rank]
//   | for each operand: address, strides[rank], own extents[], own strides[] (at least one each)
//   | to 16 bytes | scalars[] of 16
LaunchBlock PackRoutine(const wire::RoutineLaunch& launch, absl::Span<const uint64_t> addresses,
                        uint64_t scratch_address, uint64_t fault_address);
void SetPass(const RoutinePass& pass, LaunchBlock* block);

}  // namespace stride::codegen
