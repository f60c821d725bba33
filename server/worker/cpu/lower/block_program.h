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

// An elementwise program that runs without code of its own: each instruction by a loop of the block
// loops' module (ops/block_loops.h) over a block of elements, so small that values stay in the
// cache. Results equal the fused loop's: the bodies are the same, and each rounds by itself in
// both. Immutable; Run may be called from several threads at once, each with scratch memory of its
// own.
class BlockProgram {
 public:
  // `launch.by_blocks` over the launch's operands. `module` must outlive the program. INTERNAL when
  // the program does not fit its operands, or the module lacks a loop.
  static absl::StatusOr<std::shared_ptr<const BlockProgram>> Create(
      const wire::ElementwiseLaunch& launch, const LoadedModule& module);

  // The memory of one Run, aligned as AllocateScratch does.
  size_t scratch_bytes() const { return num_blocks_ * block_bytes_; }

  // Elements [begin, end) of the loop, in C order of its extents. `addresses`: of each operand's
  // first element, inputs first.
  void Run(absl::Span<const uint64_t> addresses, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  using Place = codegen::BlockSteps::Place;
  struct Step {
    LoadedModule::BlockLoop loop = nullptr;  // of kLoop
    Place arguments[3];
  };

  BlockProgram() = default;
  absl::Status Build(const wire::ElementwiseLaunch& launch, const LoadedModule& module);
  bool IsRepeated(const Place& place) const;

  // A block of scratch memory for each slot, constant and repeated operand. Loops read what is the
  // same for all elements from a block too.
  std::byte* BlockOf(const Place& place, std::byte* scratch) const;
  void FillConstants(absl::Span<const uint64_t> addresses, std::byte* scratch) const;
  // Between an operand's elements, from number `first` on, and `block`, where they lie one after
  // another.
  template <bool is_load>
  void Move(const codegen::BlockSteps::Operand& operand, uint64_t address, int64_t first, int64_t n,
            std::byte* block) const;

  codegen::BlockSteps plan_;
  std::vector<Step> steps_;  // of each step of the plan
  int64_t block_elements_ = 0;
  size_t block_bytes_ = 0, num_blocks_ = 0;
};

}  // namespace stride::cpu
