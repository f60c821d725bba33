// One operation as the daemon plans it, in a worker's loops, without a daemon or a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/base/memory_file.h"
#include "server/ops/plan.h"
#include "server/worker/cpu/lower/lowering.h"

namespace stride::bench {

// Inputs and output lie one after another in an arena, as arrays do: shared memory, mapped between
// guards. Ends the process when something fails.
class DeviceOperation {
 public:
  // `inputs` fit the operation's operands in order; their content is zero.
  DeviceOperation(const v1::Operation& operation, const std::vector<ArrayInfo>& inputs);

  template <typename T>
  T* Input(int i) {
    return reinterpret_cast<T*>(memory_.data() + offsets_[i]);
  }
  template <typename T>
  T* Output() {
    return reinterpret_cast<T*>(memory_.data() + offsets_.back());
  }

  void Run(cpu::ThreadPool& pool);

 private:
  void Compile(const wire::Code& code);

  wire::Task task_;
  std::vector<uint64_t> offsets_;  // of the inputs, then of the output
  MemoryMap memory_;
  cpu::ArenaTable arenas_;
  cpu::ModuleTable modules_;
};

// Operands that are handles; their arrays go beside.
v1::Operation ReductionOf(v1::Reduction::Function function, std::vector<int32_t> axes);
v1::Operation MatmulOf();

}  // namespace stride::bench
