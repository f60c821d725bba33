#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"

namespace stride::codegen {

// An elementwise program as steps over a block of elements. Each step is a loop of
// ops::BlockLoops() or a move of elements. Values between steps are in slots. Both device kinds run
// these.
struct BlockSteps {
  struct Place {
    enum class Kind {
      kSlot,
      kOperand,   // its elements in memory: contiguous, or one for all
      kConstant,  // the same for all elements
    } kind = Kind::kSlot;
    int number = 0;
  };
  struct Step {
    enum class Kind { kLoad, kIndex, kLoop, kStore } kind = Kind::kLoop;
    int loop = 0;                  // index in ops::BlockLoops()
    std::vector<Place> arguments;  // kLoop: one to three
    Place value;                   // the result; kStore: the value to store
    int64_t value_bytes = 0;       // bytes per element of the value
    int operand = 0;               // kLoad and kStore: index in operands
  };
  struct Operand {
    int64_t item_size = 0;
    std::vector<int64_t> strides;  // bytes along each axis
    bool contiguous = false;       // in C order of the extents
    bool repeated = false;         // one element for all
  };

  int64_t count = 0;  // elements of the loop
  std::vector<int64_t> extents;
  std::vector<Operand> operands;       // inputs, then outputs
  std::vector<std::string> constants;  // bytes of one element each; a bool is 0 or 1
  std::vector<Step> steps;
  int num_slots = 0;
  int64_t slot_item = 1;  // bytes of the widest element in a slot
};

// The steps of `launch.by_blocks` over the launch's operands. INTERNAL when the program does not
// fit its operands, or a loop is missing. A pure function.
absl::StatusOr<BlockSteps> PlanBlockSteps(const wire::ElementwiseLaunch& launch);

}  // namespace stride::codegen
