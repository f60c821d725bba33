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

// The graphs that the daemon has loaded, and the driver's executables of them.
//
// A run of steps that the driver can capture is one launch; other steps are launched one by one in
// between. Not captured: steps of libraries that allocate or read back (linear algebra, Fourier
// transforms), and kernels that set variables or are cooperative.
//
// The first replay launches every step: libraries initialize, and the size of scratch memory
// becomes known. Later replays launch an executable created for the same addresses. A graph keeps
// several, since a client ahead of the device has many results in flight. Beyond their limit the
// steps are captured again and the least recently used executable is updated, which takes longer
// than small steps. Intermediate values have the same address in all replays, so executables differ
// only by inputs and results. Steps that the driver refuses are launched one by one from then on.
//
// Not thread-safe: used by the command loop.
class GraphTable {
 public:
  // `stream` is the tasks' stream.
  static absl::StatusOr<std::unique_ptr<GraphTable>> Create(const Driver& driver, CUstream stream,
                                                            Scratch& scratch);
  ~GraphTable();

  // Properties of a kernel's launches, from its module.
  struct KernelTraits {
    // Sets variables before the launch from memory that changes: such a step is not captured.
    bool sets_variables = false;
    bool may_fault = false;
  };
  // `scratch`: a location for intermediate values instead of the graph's slot, the same for all
  // graphs; nullopt: use the slot.
  absl::Status Load(uint64_t graph, wire::Graph steps, std::optional<ops::Location> scratch,
                    absl::FunctionRef<KernelTraits(const wire::KernelLaunch&)> traits_of);
  absl::Status Unload(uint64_t graph);
  // Call before modules or arenas are unloaded: drops the executables, which name them.
  void ForgetExecutables();

  // Resources of a graph that its tasks need.
  struct Needs {
    absl::Span<const uint64_t> modules;
    // Number of places for faults, one for each step that may fault, and the prefix of each one's
    // message.
    int num_faults = 0;
    std::shared_ptr<const std::vector<std::string>> fault_places;
  };
  absl::StatusOr<Needs> NeedsOf(uint64_t graph) const;

  // Launches a step on a stream. A fault of the step goes to `device_fault`, which is zero and is
  // read by the caller; if that is 0, the step reports to `fault` and does all that is needed for
  // it.
  using LowerStep =
      absl::FunctionRef<absl::Status(const wire::Task& step, CUstream stream,
                                     codegen::RoutineFault* fault, CUdeviceptr device_fault)>;
  // `faults`: Needs::num_faults places in pinned memory; filled in stream order.
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
    CUdeviceptr scratch = 0;                // its address at that time
    std::vector<GraphExecutable> segments;  // the captured ones, in order
  };
  struct Graph {
    wire::Graph steps;
    std::optional<ops::Location> own_scratch;
    std::vector<Segment> segments;
    std::vector<int> fault;  // index of each step's fault; -1: none
    std::vector<uint64_t> modules;
    std::shared_ptr<const std::vector<std::string>> fault_places;
    int num_faults = 0;
    bool has_captured = false;
    bool begun = false;  // it was replayed
    uint64_t scratch_bytes = 0;
    CUdeviceptr device_faults = 0;
    std::list<Executable> executables;  // most recently used first
  };
  GraphTable(const Driver& driver, CUstream stream, Scratch& scratch, Stream capture)
      : driver_(driver), stream_(stream), scratch_(scratch), capture_(std::move(capture)) {}

  absl::Status LaunchSteps(const Graph& graph, int begin, int end, const Slots& slots,
                           codegen::RoutineFault* faults, LowerStep lower);
  absl::Status LaunchPlainly(Graph& graph, const Slots& slots, codegen::RoutineFault* faults,
                             LowerStep lower);
  absl::Status LaunchExecutable(const Graph& graph, const Executable& executable,
                                codegen::RoutineFault* faults, LowerStep lower);
  // Returns the executable for these slots and moves it to the list's front.
  absl::StatusOr<Executable*> FindExecutable(Graph& graph, const Slots& slots, LowerStep lower);
  absl::StatusOr<DriverGraph> Capture(const Graph& graph, const Segment& segment,
                                      const Slots& slots, LowerStep lower);
  absl::Status Fill(Graph& graph, Executable* executable, LowerStep lower);
  void ForgetExecutables(Graph& graph);
  void StayPlain(Graph& graph, const absl::Status& why);

  const Driver& driver_;
  const CUstream stream_;
  Scratch& scratch_;
  const Stream capture_;  // only for captures: nothing runs on it
  std::unordered_map<uint64_t, Graph> graphs_;
  int64_t num_steps_ = 0;  // steps in all executables
};

}  // namespace stride::cuda
