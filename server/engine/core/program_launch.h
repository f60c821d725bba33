#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/broker/compiled_module.h"
#include "server/engine/core/first_tier.h"
#include "server/ops/program_graph.h"
#include "server/wire/worker.pb.h"

namespace stride::engine {

// Records of the journal whose owners have died, on any thread. Thread-safe.
class DeadRecords {
 public:
  void Add(uint64_t record);
  bool any() const { return any_.load(std::memory_order_acquire); }
  std::vector<uint64_t> Take();

 private:
  std::atomic<bool> any_{false};
  absl::Mutex mutex_;
  std::vector<uint64_t> records_ ABSL_GUARDED_BY(mutex_);
};

// The compiled program for devices of one target.
struct CompiledProgram {
  // One for each of graph.codes, then the block loops if steps run by blocks.
  std::vector<std::shared_ptr<const broker::CompiledModule>> modules;
  wire::Graph steps;          // with modules, arguments, and the graph's slots
  std::vector<bool> written;  // by input of the program: kernels write it
  // Elements that one run adds to ByBlocks::elements; 0: no step runs by blocks.
  int64_t elements_by_blocks = 0;
};

// State shared by the tasks that replay one plan of a program. The plan and its tasks own it;
// workers unload the graph afterwards. The tenant's transactions guard the members that are not
// const.
struct ProgramLaunch {
  ProgramLaunch(uint64_t id, ops::ProgramGraph graph) : id(id), graph(std::move(graph)) {}
  ~ProgramLaunch();
  ProgramLaunch(const ProgramLaunch&) = delete;
  ProgramLaunch& operator=(const ProgramLaunch&) = delete;

  const uint64_t id;  // unique in the daemon's life; names the graph in workers
  const std::string code_key = absl::StrCat("replay/", id);
  const ops::ProgramGraph graph;

  std::map<std::string, std::shared_ptr<const CompiledProgram>> compiled;  // by target
  // Progress towards compiled code, by target, while steps run by blocks.
  struct ByBlocks {
    int64_t elements = 0;    // run by blocks so far
    bool requested = false;  // compilation of their code
  };
  std::map<std::string, ByBlocks> by_blocks;

  // Used by the journal writer.
  uint64_t record = 0;
  std::shared_ptr<DeadRecords> dead;
};

// The plan of a task that runs the program. The slots of the task are those of the graph.
ops::Plan PlanOf(const ProgramLaunch& program_launch);

// The steps of a program that run by blocks until their code is compiled.
struct LaunchTier {
  std::shared_ptr<const broker::CompiledModule> loops;  // null: no step does
  std::vector<std::optional<FirstTier>> codes;          // by graph.codes; none: compiled code
  bool RunsByBlocks(int code) const {
    return loops != nullptr && code >= 0 && codes[static_cast<size_t>(code)].has_value();
  }
};

// `modules`: one for each of graph.codes, or its replacement. Fails if a kernel does not exist or
// does not take its arguments.
absl::StatusOr<CompiledProgram> MakeCompiledProgram(
    const ops::ProgramGraph& graph,
    std::vector<std::shared_ptr<const broker::CompiledModule>> modules, const LaunchTier& tier);

// Makes the launch run by blocks or, if `loops` is null, with the module's own code. `code` is the
// code of its plan.
void SetByBlocks(wire::Task* task, const broker::CompiledModule* loops, const wire::Code& code);

// The kernel of this name. INVALID_ARGUMENT lists the module's kernels.
absl::StatusOr<const wire::KernelDescription*> FindKernel(const wire::ModuleDescription& module,
                                                          const std::string& entry);

}  // namespace stride::engine
