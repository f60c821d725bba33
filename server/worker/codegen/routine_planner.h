#pragma once

#include <array>
#include <cstdint>

#include "server/store/dtype.h"
#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {

inline constexpr int64_t kBlockElements = 2048;  // elements per step of a block: 8 per thread
// Most elements of a row that radix.h and keyed.h sort: its counts have 32 bits.
inline constexpr int64_t kMostRadix = (int64_t{1} << 32) - 1;
// Most parts of the elements that a processor combines concurrently.
inline constexpr int64_t kGroupChunksCpu = 64;
inline constexpr int64_t kTableBytes = int64_t{64} << 20;

inline int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t Product(const google::protobuf::RepeatedField<int64_t>& extents);

// The passes of one routine and their scratch memory, as planners of the kinds of routines append
// them. `launch` and `target` outlive it.
class RoutinePlanner {
 public:
  RoutinePlanner(const wire::RoutineLaunch& launch, const RoutineTarget& target)
      : launch_(launch), target_(target), count_(Product(launch.extents())) {}

 protected:
  bool is_cuda() const { return target_.num_multiprocessors > 0; }
  const wire::RoutineOperand& operand(int i) const { return launch_.operands(i); }
  const wire::RoutineOperand& last() const { return launch_.operands(launch_.operands_size() - 1); }

  void Add(int phase, int64_t items, std::array<int64_t, 4> arguments = {}) {
    if (items > 0) shape_.passes.push_back({phase, items, arguments});
  }
  int64_t ItemBytes() const { return ItemSize(static_cast<DType>(operand(0).operand().dtype())); }
  int64_t Scratch() const { return static_cast<int64_t>(shape_.scratch_bytes); }
  void AddScratch(int64_t bytes) { shape_.scratch_bytes += static_cast<uint64_t>(bytes); }

  // At least the size of the compiled code's Index (ops/routine_plan.cc: narrow).
  int64_t IndexBytes() const;

  // Sorts rows of n, whose keys have `digits`, in scratch memory appended at its present end.
  // Returns the arguments of a pass. One more word is cleared.
  std::array<int64_t, 4> RadixSort(int64_t rows, int64_t n, int64_t most_in_tile, int64_t digits,
                                   int64_t item_bytes, int64_t place_bytes, bool keeps);

  const wire::RoutineLaunch& launch_;
  const RoutineTarget& target_;
  const int64_t count_;
  RoutineShape shape_;
};

}  // namespace stride::codegen
