// Scheduler: programs that a worker has loaded.
#include <algorithm>

#include "server/base/system_error.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/task.h"

namespace stride::scheduler {
namespace {

// Graphs that one worker holds. It is more than a worker's queue has tasks, so no graph of a packet
// that is not sent yet is unloaded.
constexpr size_t kMaxGraphs = 1000;

}  // namespace

// Loads the modules and the graph of the task that the worker does not have yet.
absl::Status Scheduler::LoadReplay(const Task& task, Lane& lane) {
  for (const auto& module : task.ready->modules) {
    if (absl::Status status = LoadModule(module, lane); !status.ok()) return status;
  }
  Lane::Graph& graph = lane.graphs[task.replay->id];
  graph.last_use = ++lane.num_graph_uses;
  const bool known = !graph.replay.expired();
  if (known && graph.ready.lock() == task.ready) return absl::OkStatus();
  // The graph's code was compiled since it was loaded. Tasks in a packet that is not sent yet run
  // the new steps, whose results are the same.
  if (known) lane.worker->UnloadGraph(task.replay->id).IgnoreError();
  graph.replay = task.replay;
  graph.ready = task.ready;
  absl::Status sent = lane.worker->LoadGraph(task.replay->id, task.ready->steps);
  if (IsLack(sent)) lane.graphs.erase(task.replay->id);
  ForgetReplays(lane);
  return sent;
}

// Unloads graphs that have no owner any more, and the least recently used beyond kMaxGraphs.
void Scheduler::ForgetReplays(Lane& lane) {
  for (auto it = lane.graphs.begin(); it != lane.graphs.end();) {
    const bool gone = it->second.replay.expired();
    if (gone && lane.worker != nullptr) lane.worker->UnloadGraph(it->first).IgnoreError();
    it = gone ? lane.graphs.erase(it) : std::next(it);
  }
  while (lane.graphs.size() > kMaxGraphs) {
    auto oldest = std::min_element(
        lane.graphs.begin(), lane.graphs.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    if (lane.worker != nullptr) lane.worker->UnloadGraph(oldest->first).IgnoreError();
    lane.graphs.erase(oldest);
  }
}

}  // namespace stride::scheduler
