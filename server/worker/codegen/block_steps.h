#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"

namespace stride::codegen {

// An elementwise program as steps over a block of elements, each a loop of ops::BlockLoops() or a
// move of elements. Values between steps lie in slots. Both device kinds run these.
struct BlockSteps {
  struct Place {
    enum class Kind {
      kSlot,
      kOperand,   // where its elements lie: one after another, or one for all
      kConstant,  // the same for all elements
    } kind = Kind::kSlot;
    int number = 0;
  };
  struct Step {
    enum class Kind { kLoad, kIndex, kLoop, kStore } kind = Kind::kLoop;
    int loop = 0;                  // in ops::BlockLoops()
    std::vector<Place> arguments;  // of a loop: one to three
    Place value;                   // result; of kStore: what is stored
    int64_t value_bytes = 0;       // of an element of it
    int operand = 0;               // of kLoad and kStore
  };
  struct Operand {
    int64_t item_size = 0;
    std::vector<int64_t> strides;  // for each axis, in bytes
    bool contiguous = false;       // in C order of the extents
    bool repeated = false;         // one element for all
  };

  int64_t count = 0;  // elements of the loop
  std::vector<int64_t> extents;
  std::vector<Operand> operands;       // inputs, then outputs
  std::vector<std::string> constants;  // bytes of an element each; a bool is 0 or 1
  std::vector<Step> steps;
  int num_slots = 0;
  int64_t slot_item = 1;  // bytes of the widest element in a slot
};

// The steps of `launch.by_blocks` over the launch's operands. INTERNAL when the program does not
// fit its operands, or there is no such loop. A pure function.
absl::StatusOr<BlockSteps> PlanBlockSteps(const wire::ElementwiseLaunch& launch);

}  // namespace stride::codegen
