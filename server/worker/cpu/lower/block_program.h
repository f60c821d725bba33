#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/block_steps.h"
#include "server/worker/cpu/lower/loaded_module.h"

namespace stride::cpu {

// An elementwise program that runs without compiled code of its own. Each instruction is a loop of
// the block loops' module (ops/block_loops.h) over a block of elements small enough for the cache.
// Results equal the fused loop's: both use the same bodies, and each body rounds by itself.
// Immutable. Run may be called from several threads at once, each with its own scratch memory.
class BlockProgram {
 public:
  // `launch.by_blocks` over the launch's operands. `module` must outlive the program. INTERNAL when
  // the program does not fit its operands, or the module lacks a loop.
  static absl::StatusOr<std::shared_ptr<const BlockProgram>> Create(
      const wire::ElementwiseLaunch& launch, const LoadedModule& module);

  // Bytes of scratch memory for one Run, with the alignment of AllocateScratch.
  size_t scratch_bytes() const { return num_blocks_ * block_bytes_; }

  // Computes elements [begin, end) of the loop, in C order of its extents. `addresses`: each
  // operand's first element, inputs first.
  void Run(absl::Span<const uint64_t> addresses, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  using Place = codegen::BlockSteps::Place;
  struct Step {
    LoadedModule::BlockLoop loop = nullptr;  // set for steps of kind kLoop
    Place arguments[3];
  };

  BlockProgram() = default;
  absl::Status Build(const wire::ElementwiseLaunch& launch, const LoadedModule& module);
  bool IsRepeated(const Place& place) const;

  // The block of scratch memory of a slot, a constant or a repeated operand. Loops read values that
  // are equal for all elements from a block too.
  std::byte* BlockOf(const Place& place, std::byte* scratch) const;
  void FillConstants(absl::Span<const uint64_t> addresses, std::byte* scratch) const;
  // Copies `n` elements of an operand, from number `first` on, to or from the contiguous `block`.
  template <bool is_load>
  void Move(const codegen::BlockSteps::Operand& operand, uint64_t address, int64_t first, int64_t n,
            std::byte* block) const;

  codegen::BlockSteps plan_;
  std::vector<Step> steps_;  // one per step of plan_
  int64_t block_elements_ = 0;
  size_t block_bytes_ = 0, num_blocks_ = 0;
};

}  // namespace stride::cpu
