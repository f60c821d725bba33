// One operation as the daemon plans it, for a device without a daemon.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/ops/plan.h"

namespace stride::bench {

// Its inputs and its output lie one after another in an arena, as arrays do. Ends the process when
// there is no plan.
class DeviceOperation {
 public:
  // `inputs` fit the operation's operands in order. `one_buffer`: they are views of the first's.
  DeviceOperation(const v1::Operation& operation, const std::vector<ArrayInfo>& inputs,
                  bool one_buffer = false);

  // Bytes from the arena's start, and of all of it.
  uint64_t InputOffset(int i) const { return offsets_[i]; }
  uint64_t OutputOffset() const { return offsets_.back(); }
  uint64_t size() const { return size_; }
  const ArrayInfo& output() const { return plan_.outputs[0]; }

  // Code to compile and load before the task; none: the device needs no code.
  const std::optional<wire::Code>& code() const { return plan_.code; }
  wire::Task TaskIn(uint64_t arena, uint64_t module) const;

 private:
  ops::Plan plan_;
  std::vector<uint64_t> offsets_;  // inputs, then the output
  uint64_t size_ = 0;
};

// Operations whose operands are handles; the caller passes the arrays.
v1::Operation ReductionOf(v1::Reduction::Function function, std::vector<int32_t> axes);
v1::Operation MatmulOf();
// An expression of the first `num_inputs` of x, y and z.
v1::Operation ExpressionOf(const std::string& text, int num_inputs);

}  // namespace stride::bench
