// One operation as the daemon plans it, in a CPU worker's loops, without a daemon or a worker.
#pragma once

#include <vector>

#include "bench/device/device_operation.h"
#include "server/base/memory_file.h"
#include "server/worker/cpu/lower/lowering.h"

namespace stride::bench {

// In an arena of its own: shared memory, mapped between guards. Ends the process when something
// fails.
class CpuOperation {
 public:
  // The content of the inputs is zero.
  CpuOperation(const v1::Operation& operation, const std::vector<ArrayInfo>& inputs);

  template <typename T>
  T* Input(int i) {
    return reinterpret_cast<T*>(memory_.data() + operation_.InputOffset(i));
  }
  template <typename T>
  T* Output() {
    return reinterpret_cast<T*>(memory_.data() + operation_.OutputOffset());
  }

  void Run(cpucuda::ThreadPool& pool);

 private:
  void Compile(const wire::Code& code);

  const DeviceOperation operation_;
  const wire::Task task_;
  MemoryMap memory_;
  cpu::ArenaTable arenas_;
  cpu::ModuleTable modules_;
};

}  // namespace stride::bench
