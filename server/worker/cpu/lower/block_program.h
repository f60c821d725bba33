#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
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
  size_t scratch_bytes() const { return static_cast<size_t>(num_slots_) * slot_bytes_; }

  // Elements [begin, end) of the loop, in C order of its extents. `addresses`: of each operand's
  // first element, inputs first.
  void Run(absl::Span<const uint64_t> addresses, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  // Where the elements of a value lie while a block is computed.
  enum class Place { kSlot, kInput, kOutput };
  struct Value {
    Place place = Place::kSlot;
    int number = 0;  // of the slot or the operand
  };
  struct Step {
    enum class Kind { kLoad, kIndex, kLoop, kStore } kind = Kind::kLoop;
    LoadedModule::BlockLoop loop = nullptr;
    int arguments[3] = {0, 0, 0};  // values
    int value = 0;                 // result; of kStore: what is stored
    int operand = 0;               // of kLoad and kStore
  };
  // A value that is the same for all elements: bytes, or the one element of an input.
  struct Constant {
    int value = 0;
    int64_t item_size = 0;
    std::string bytes;  // empty: the operand's
    int operand = 0;
    bool is_bool = false;
  };
  struct Operand {
    int64_t item_size = 0;
    std::vector<int64_t> strides;
    bool contiguous = false, repeated = false;
  };

  BlockProgram() = default;
  absl::Status Build(const wire::ElementwiseLaunch& launch, const LoadedModule& module);
  absl::Status AddInstruction(const wire::ElementwiseLaunch& launch, int number,
                              const LoadedModule& module);
  absl::Status AddLoop(const std::string& name, absl::Span<const int> arguments, int value,
                       const LoadedModule& module);
  absl::Status AddStores(const wire::ElementwiseLaunch& launch, const LoadedModule& module);
  void StoreInPlace(const wire::ElementwiseLaunch& launch);
  void AssignSlots();

  void FillConstants(absl::Span<const uint64_t> addresses, std::byte* scratch) const;
  // Between an operand's elements, from number `first` on, and `block`, where they lie one after
  // another.
  template <bool is_load>
  void Move(const Operand& operand, uint64_t address, int64_t first, int64_t n,
            std::byte* block) const;

  int64_t block_elements_ = 0;
  size_t slot_bytes_ = 0;
  int num_slots_ = 0;
  std::vector<int64_t> extents_;
  std::vector<Operand> operands_;
  std::vector<Value> values_;
  std::vector<int64_t> value_bytes_;  // of an element of each value
  std::vector<Constant> constants_;
  std::vector<Step> steps_;
};

}  // namespace stride::cpu
