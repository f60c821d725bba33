#pragma once

#include <cuda.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/bind.h"
#include "server/wire/worker.pb.h"
#include "server/worker/codegen/routine_fault.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"
#include "server/worker/cuda/driver/scratch.h"

namespace stride::cuda {

// The graphs that the daemon has brought, and the driver's executables of them.
//
// Runs of steps that the driver can capture (all but those of libraries that allocate or read back:
// linear algebra and Fourier transforms; and kernels that set variables or are cooperative) are one
// launch each, the others are launched one by one between them. The first replay launches every
// step: libraries get ready, and it is seen how much scratch memory there has to be. Later ones
// replay an executable made for the same addresses, of which a graph keeps some, as a client that
// is ahead of the device has many results under way; beyond that the steps are captured anew and
// the one used longest ago is updated, which takes longer than small steps. What is between steps
// has the same place in all replays, so that executables differ by inputs and results alone. What
// the driver does not take after all stays with launches of steps.
//
// Not thread-safe: the command loop's.
class GraphTable {
 public:
  // `stream` is that of the tasks.
  static absl::StatusOr<std::unique_ptr<GraphTable>> Create(const Driver& driver, CUstream stream,
                                                            Scratch& scratch);
  ~GraphTable();

  // What a kernel's module tells of its launch.
  struct KernelTraits {
    // Before the launch, from memory that changes: such a step is not captured.
    bool sets_variables = false;
    bool may_fault = false;
  };
  // `scratch`: where what is between steps is to be instead of in its slot, if anywhere; the same
  // for all graphs.
  absl::Status Load(uint64_t graph, wire::Graph steps, std::optional<ops::Location> scratch,
                    absl::FunctionRef<KernelTraits(const wire::KernelLaunch&)> traits_of);
  absl::Status Unload(uint64_t graph);
  // Modules or arenas go: no executable may name them.
  void ForgetExecutables();

  // Of a graph: what its tasks need to be told from elsewhere.
  struct Needs {
    absl::Span<const uint64_t> modules;
    // Places for faults, one for each step that may have one, and what each is to be told with.
    int num_faults = 0;
    std::shared_ptr<const std::vector<std::string>> fault_places;
  };
  absl::StatusOr<Needs> NeedsOf(uint64_t graph) const;

  // Launches a step on a stream. A fault of its goes to `device_fault`, which is zero and is
  // fetched by others, or, where that is 0, to `fault`, whatever the step has to do for it.
  using LowerStep =
      absl::FunctionRef<absl::Status(const wire::Task& step, CUstream stream,
                                     codegen::RoutineFault* fault, CUdeviceptr device_fault)>;
  // `faults`: Needs::num_faults of them, pinned; filled in stream order.
  absl::Status Replay(const wire::GraphLaunch& launch, codegen::RoutineFault* faults,
                      LowerStep lower);

 private:
  using Slots = std::vector<ops::Location>;
  struct Segment {
    int begin = 0, end = 0;  // steps
    int first_fault = 0, end_fault = 0;
    bool captured = false;
  };
  struct Executable {
    Slots slots;
    CUdeviceptr scratch = 0;                // where that was
    std::vector<GraphExecutable> segments;  // captured ones, in order
  };
  struct Graph {
    wire::Graph steps;
    std::optional<ops::Location> own_scratch;
    std::vector<Segment> segments;
    std::vector<int> fault;  // of each step; -1: it has none
    std::vector<uint64_t> modules;
    std::shared_ptr<const std::vector<std::string>> fault_places;
    int num_faults = 0;
    bool has_captured = false;
    bool begun = false;  // it was replayed
    uint64_t scratch_bytes = 0;
    CUdeviceptr device_faults = 0;
    std::list<Executable> executables;  // the last used first
  };
  GraphTable(const Driver& driver, CUstream stream, Scratch& scratch, Stream capture)
      : driver_(driver), stream_(stream), scratch_(scratch), capture_(std::move(capture)) {}

  absl::Status LaunchSteps(const Graph& graph, int begin, int end, const Slots& slots,
                           codegen::RoutineFault* faults, LowerStep lower);
  absl::Status LaunchPlainly(Graph& graph, const Slots& slots, codegen::RoutineFault* faults,
                             LowerStep lower);
  absl::Status LaunchExecutable(const Graph& graph, const Executable& executable,
                                codegen::RoutineFault* faults, LowerStep lower);
  // For these slots, at the list's front.
  absl::StatusOr<Executable*> FindExecutable(Graph& graph, const Slots& slots, LowerStep lower);
  absl::StatusOr<DriverGraph> Capture(const Graph& graph, const Segment& segment,
                                      const Slots& slots, LowerStep lower);
  absl::Status Fill(Graph& graph, Executable* executable, LowerStep lower);
  void ForgetExecutables(Graph& graph);
  void StayPlain(Graph& graph, const absl::Status& why);

  const Driver& driver_;
  const CUstream stream_;
  Scratch& scratch_;
  const Stream capture_;  // nothing ever runs on it
  std::unordered_map<uint64_t, Graph> graphs_;
  int64_t num_steps_ = 0;  // of all executables
};

}  // namespace stride::cuda
