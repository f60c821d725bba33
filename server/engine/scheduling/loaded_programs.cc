// Scheduler: programs that a worker has loaded.
#include <algorithm>

#include "server/base/system_error.h"
#include "server/engine/core/task.h"
#include "server/engine/scheduling/scheduler.h"

namespace stride::engine {
namespace {

// Graphs that one worker holds. It is more than a worker's queue has tasks, so no graph of a packet
// that is not sent yet is unloaded.
constexpr size_t kMaxGraphs = 1000;

}  // namespace

// Loads the modules and the graph of the task that the worker does not have yet.
absl::Status Scheduler::LoadProgram(const Task& task, DeviceQueue& queue) {
  for (const auto& module : task.compiled->modules) {
    if (absl::Status status = LoadModule(module, queue); !status.ok()) return status;
  }
  DeviceQueue::Graph& graph = queue.graphs[task.program_launch->id];
  graph.last_use = ++queue.num_graph_uses;
  const bool known = !graph.program_launch.expired();
  if (known && graph.compiled.lock() == task.compiled) return absl::OkStatus();
  // The graph's code was compiled since it was loaded. Tasks in a packet that is not sent yet run
  // the new steps, whose results are the same.
  if (known) queue.worker->UnloadGraph(task.program_launch->id).IgnoreError();
  graph.program_launch = task.program_launch;
  graph.compiled = task.compiled;
  absl::Status sent = queue.worker->LoadGraph(task.program_launch->id, task.compiled->steps);
  if (IsLack(sent)) queue.graphs.erase(task.program_launch->id);
  ForgetPrograms(queue);
  return sent;
}

// Unloads graphs that have no owner any more, and the least recently used beyond kMaxGraphs.
void Scheduler::ForgetPrograms(DeviceQueue& queue) {
  for (auto it = queue.graphs.begin(); it != queue.graphs.end();) {
    const bool gone = it->second.program_launch.expired();
    if (gone && queue.worker != nullptr) queue.worker->UnloadGraph(it->first).IgnoreError();
    it = gone ? queue.graphs.erase(it) : std::next(it);
  }
  while (queue.graphs.size() > kMaxGraphs) {
    auto oldest = std::min_element(
        queue.graphs.begin(), queue.graphs.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    if (queue.worker != nullptr) queue.worker->UnloadGraph(oldest->first).IgnoreError();
    queue.graphs.erase(oldest);
  }
}

}  // namespace stride::engine
