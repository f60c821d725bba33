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
#include "server/ops/program_graph.h"
#include "server/scheduler/first_tier.h"
#include "server/wire/worker.pb.h"

namespace stride::recovery {
class ReplayRecord;
}

namespace stride::scheduler {

struct Task;

// Records of the journal whose owners died, wherever that was. Thread-safe.
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

// What the tasks that replay one plan of a program share. Lives as long as the plan or a task needs
// it; workers are told to forget it afterwards. The tenant's transactions guard members, but for
// those that are const.
struct Replay {
  Replay(uint64_t id, ops::ProgramGraph graph) : id(id), graph(std::move(graph)) {}
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  const uint64_t id;  // unique in the daemon's life; its name in workers
  const std::string code_key = absl::StrCat("replay/", id);
  const ops::ProgramGraph graph;

  // As devices of one target run it.
  struct Ready {
    // Modules of graph.codes, and the block loops where steps run by blocks.
    std::vector<std::shared_ptr<const broker::CompiledModule>> modules;
    wire::Graph steps;          // with modules, arguments, and the graph's slots
    std::vector<bool> written;  // of the program's inputs, by kernels
    // That a run counts for, towards code of the steps that run by blocks; 0: no step does.
    int64_t elements_by_blocks = 0;
  };
  std::map<std::string, std::shared_ptr<const Ready>> ready;  // by target
  // By target, while steps run by blocks.
  struct ByBlocks {
    int64_t elements = 0;    // that ran so
    bool requested = false;  // their code, from the compiler
  };
  std::map<std::string, ByBlocks> by_blocks;

  // The recorder's.
  uint64_t record = 0;
  std::shared_ptr<DeadRecords> dead;
};

// What a task of it is, with the graph's slots as its own.
ops::Plan PlanOf(const Replay& replay);

// Which steps of a program run by blocks until their code is compiled.
struct ReplayTier {
  std::shared_ptr<const broker::CompiledModule> loops;  // null: no step does
  std::vector<std::optional<FirstTier>> codes;          // of the graph's; none: its own code
  bool RunsByBlocks(int code) const {
    return loops != nullptr && code >= 0 && codes[static_cast<size_t>(code)].has_value();
  }
};

// `modules`: of graph.codes, or what runs in their place. An error is a kernel's that does not take
// its arguments, or is not there.
absl::StatusOr<Replay::Ready> MakeReady(
    const ops::ProgramGraph& graph,
    std::vector<std::shared_ptr<const broker::CompiledModule>> modules, const ReplayTier& tier);

void ToRecord(const ops::ProgramGraph& graph, recovery::ReplayRecord* record);
// Nothing but what tasks need: neither outputs nor what they weigh.
ops::ProgramGraph GraphFrom(const recovery::ReplayRecord& record);

// Has the launch run by blocks, or, where `loops` is null, the module's own code. `code` is what it
// was planned with.
void SetByBlocks(wire::Task* task, const broker::CompiledModule* loops, const wire::Code& code);

// The kernel of this name, or an error that tells which there are.
absl::StatusOr<const wire::KernelDescription*> FindKernel(const wire::ModuleDescription& module,
                                                          const std::string& entry);

// What runs of equal code are known by.
const std::string& CodeKeyOf(const Task& task);

}  // namespace stride::scheduler
