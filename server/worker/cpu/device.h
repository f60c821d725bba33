#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cpucuda/cpucuda.h"
#include "server/worker/cpu/lower/arena_table.h"
#include "server/worker/cpu/lower/fft_plan_cache.h"
#include "server/worker/cpu/lower/lower_graph.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/serial_queue.h"
#include "server/worker/runtime/device.h"
#include "server/worker/runtime/print_budget.h"
#include "server/worker/runtime/task_gate.h"

namespace stride::cpu {

// The processor's cores as a device. Arenas are memory files that the daemon created. Tasks run one
// after another on the compute thread, each spread over the pool. Copies run on two more threads,
// one per direction.
class CpuDevice : public worker::Device {
 public:
  absl::Status Start(const Environment& environment) override;
  absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) override;
  absl::Status MapArena(uint64_t arena, uint64_t size, UniqueFd fd) override;
  absl::Status MapHostArena(uint64_t arena, uint64_t size, UniqueFd fd) override;
  absl::Status UnmapArena(uint64_t arena) override;
  absl::Status MapPeerArena(uint64_t arena, uint64_t size, UniqueFd fd) override;
  absl::StatusOr<wire::ModuleLoaded> LoadModule(uint64_t module, UniqueFd object,
                                                const wire::LoadModule& load) override;
  absl::Status UnloadModule(uint64_t module) override;
  absl::Status LoadGraph(uint64_t graph, wire::Graph steps) override;
  absl::Status UnloadGraph(uint64_t graph) override;
  void Enqueue(const wire::Task& task) override;
  void Cancel(absl::Span<const uint64_t> sequences) override;
  void Copy(const wire::Copy& copy) override;
  void Drain() override;

 private:
  void EnqueueGraph(const wire::Task& task);
  LoweringContext Context() {
    return {&arenas_, &modules_, pool_.get(), &fft_plans_, &peers_, &printed_};
  }
  // On the compute thread. Whether the task's report may wait for that of the next task.
  bool MayHoldBack(std::chrono::steady_clock::time_point now);
  // On the compute thread. Calls `run` unless the task was removed.
  void RunTask(uint64_t sequence, absl::FunctionRef<absl::Status()> run);
  // On the compute thread. Sends the text that the task printed.
  void SendPrinted(uint64_t sequence);
  static absl::Status RunWork(uint64_t sequence, const std::string& label, const Work& work);

  Environment environment_;
  ArenaTable arenas_;
  ArenaTable peers_;  // MapPeerArena: read only
  ModuleTable modules_;
  std::map<uint64_t, LoadedGraph> graphs_;
  std::unique_ptr<cpucuda::ThreadPool> pool_;
  FftPlanCache fft_plans_;  // used by the compute thread
  worker::TaskGate gate_;
  // Used by the compute thread.
  PrintedText printed_;  // text of the running task
  worker::PrintBudget print_budget_;
  // Used by the compute thread: number of delayed reports, and the time of the first.
  int num_held_back_ = 0;
  std::chrono::steady_clock::time_point held_back_since_;
  // Last: their threads end before the members that they use are destroyed.
  std::unique_ptr<SerialQueue> compute_, uploads_, downloads_;
};

}  // namespace stride::cpu
