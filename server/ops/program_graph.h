#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/ops/plan.h"
#include "server/ops/program_plan.h"

namespace stride::ops {

// A step of a graph. `task` has the step's own slots (plan.h); `places` gives the location of each:
// `arena` is a slot of the graph, and `offset` is added. The arena of a ZeroFill is also a step's
// slot.
struct GraphStep {
  wire::Task task;
  std::vector<Location> places;
  int code = -1;  // index in ProgramGraph::codes; -1: no code
  // For kernels: arguments are bound once it is compiled (BindKernelArguments).
  std::shared_ptr<const v1::Operation> kernel;
  std::vector<Input> inputs;
};

// A program's plan as one task on one device. Slots: the program's inputs in order, then new
// buffers for its results, then a scratch buffer for all intermediate results. An intermediate
// result has its own range in the scratch buffer while a step may use it.
struct ProgramGraph {
  std::vector<GraphStep> steps;
  std::vector<wire::Code> codes;  // without duplicates
  size_t num_inputs = 0;
  std::vector<bool> written;          // for each input: written in place, possibly through a view
  std::vector<bool> passed;           // for each input: passed to a kernel, which may write it
  std::vector<int64_t> result_bytes;  // sizes of the buffers for results
  int64_t scratch_bytes = 0;          // 0: no scratch buffer
  struct Output {
    size_t slot = 0;
    ArrayInfo info;
  };
  std::vector<Output> outputs;  // the program's outputs
  double bytes = 0, flops = 0;
  std::string required_kind;  // device kind of client functions; empty: any

  size_t num_slots() const { return num_inputs + result_bytes.size() + (scratch_bytes > 0); }
};

// Builds the graph of `plan`, whose kernel steps already have their modules' code. nullopt if the
// program cannot be one task: a step needs copies or overwrites its input, or two steps need
// different device kinds.
std::optional<ProgramGraph> MakeGraph(const ProgramPlan& plan);

// Assigns offsets in one block of memory to intervals of time. Intervals that overlap in time get
// disjoint ranges.
class OffsetPlanner {
 public:
  static constexpr int64_t kAlignment = 256;
  // Adds an interval from step `first` to step `last`, inclusive. `first` must not decrease between
  // calls.
  int64_t Add(int64_t bytes, size_t first, size_t last);
  int64_t total_bytes() const { return total_; }

 private:
  struct Block {
    int64_t offset, end;
    size_t last;
  };
  std::vector<Block> alive_;  // sorted by offset
  int64_t total_ = 0;
};

}  // namespace stride::ops
