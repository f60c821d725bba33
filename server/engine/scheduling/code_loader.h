#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/broker/compiled_module.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task.h"

namespace stride::engine {

// Loads the code of tasks into the workers that run them: modules, and the graphs of programs. A
// queue forgets what its worker has when the worker ends (DeviceQueue::Contents::Clear).
class CodeLoader {
 public:
  explicit CodeLoader(Core* core) : core_(core) {}

  // Loads the code of the task that the queue's worker does not have. Returns a lack of descriptors
  // (IsLack). A worker that is gone causes no error: its death takes the task back.
  absl::Status Load(const Task& task, DeviceQueue& queue);
  // Unloads graphs that have no owner any more, and the least recently used beyond the bound.
  void Unload(DeviceQueue& queue);
  // The error of the queue's worker for a module of the task. OK: none.
  static absl::Status ErrorOf(const Task& task, const DeviceQueue& queue);

 private:
  absl::Status LoadModule(const std::shared_ptr<const broker::CompiledModule>& module,
                          DeviceQueue& queue);
  absl::Status LoadProgram(const Task& task, DeviceQueue& queue);

  Core* const core_;
};

}  // namespace stride::engine
