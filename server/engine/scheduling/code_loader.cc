#include "server/engine/scheduling/code_loader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/base/system_error.h"
#include "server/wire/status.h"

namespace stride::engine {
namespace {

// Graphs that one worker holds. It is more than a worker's queue has tasks, so no graph of a packet
// that is not sent yet is unloaded.
constexpr size_t kMaxGraphs = 1000;

}  // namespace

absl::Status CodeLoader::Load(const Task& task, DeviceQueue& queue) {
  absl::Status status = LoadModule(task.code.module, queue);
  if (!IsLack(status)) status = LoadModule(task.code.block_loops, queue);
  if (!IsLack(status) && task.program_launch != nullptr) status = LoadProgram(task, queue);
  return IsLack(status) ? status : absl::OkStatus();
}

absl::Status CodeLoader::LoadModule(const std::shared_ptr<const broker::CompiledModule>& module,
                                    DeviceQueue& queue) {
  if (module == nullptr || !queue.contents.modules.insert(module->id).second)
    return absl::OkStatus();
  auto loaded = [this, queue = &queue, id = module->id](absl::StatusOr<wire::ModuleLoaded> result) {
    TenantTransaction transaction(*core_, queue->tenant);
    // The worker is gone: its successor loads the module again.
    if (!result.ok()) return;
    absl::Status status = wire::ToStatus(result->status());
    if (!status.ok()) queue->contents.load_errors[id] = status;
    queue->contents.attributes[id] = *std::move(result);
    ++queue->contents.num_answers;
    if (queue->contents.num_waiting > 0) transaction.WakeWaiters();
  };
  absl::Status sent = queue.worker->LoadModule(*module, loaded);
  if (IsLack(sent)) queue.contents.modules.erase(module->id);
  return sent;
}

// Loads the modules and the graph of the task that the worker does not have yet.
absl::Status CodeLoader::LoadProgram(const Task& task, DeviceQueue& queue) {
  for (const auto& module : task.code.compiled->modules) {
    if (absl::Status status = LoadModule(module, queue); !status.ok()) return status;
  }
  DeviceQueue::Contents::Graph& graph = queue.contents.graphs[task.program_launch->id];
  graph.last_use = ++queue.contents.num_graph_uses;
  const bool known = !graph.program_launch.expired();
  if (known && graph.compiled.lock() == task.code.compiled) return absl::OkStatus();
  // The graph's code was compiled since it was loaded. Tasks in a packet that is not sent yet run
  // the new steps, whose results are the same.
  if (known) queue.worker->UnloadGraph(task.program_launch->id).IgnoreError();
  graph.program_launch = task.program_launch;
  graph.compiled = task.code.compiled;
  absl::Status sent = queue.worker->LoadGraph(task.program_launch->id, task.code.compiled->steps);
  if (IsLack(sent)) queue.contents.graphs.erase(task.program_launch->id);
  Unload(queue);
  return sent;
}

void CodeLoader::Unload(DeviceQueue& queue) {
  for (auto it = queue.contents.graphs.begin(); it != queue.contents.graphs.end();) {
    const bool gone = it->second.program_launch.expired();
    if (gone && queue.worker != nullptr) queue.worker->UnloadGraph(it->first).IgnoreError();
    it = gone ? queue.contents.graphs.erase(it) : std::next(it);
  }
  while (queue.contents.graphs.size() > kMaxGraphs) {
    auto oldest = std::min_element(
        queue.contents.graphs.begin(), queue.contents.graphs.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    if (queue.worker != nullptr) queue.worker->UnloadGraph(oldest->first).IgnoreError();
    queue.contents.graphs.erase(oldest);
  }
}

absl::Status CodeLoader::ErrorOf(const Task& task, const DeviceQueue& queue) {
  std::vector<std::shared_ptr<const broker::CompiledModule>> modules = {task.code.module,
                                                                        task.code.block_loops};
  if (task.code.compiled != nullptr) modules = task.code.compiled->modules;
  absl::Status error;
  for (const auto& module : modules) {
    if (module == nullptr) continue;
    auto it = queue.contents.load_errors.find(module->id);
    if (it != queue.contents.load_errors.end()) error = it->second;
  }
  return error;
}

}  // namespace stride::engine
