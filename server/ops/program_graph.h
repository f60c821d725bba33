#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/ops/plan.h"
#include "server/ops/program_plan.h"

namespace stride::ops {

// A step of a graph. The slots of `task` are the step's own (plan.h); `places` says where each of
// them lies: `arena` is a slot of the graph, `offset` is added. ZeroFill's arena is one of them
// too.
struct GraphStep {
  wire::Task task;
  std::vector<Location> places;
  int code = -1;  // in ProgramGraph::codes; -1: it needs none
  // A kernel's: its arguments are bound once it is compiled (BindKernelArguments).
  std::shared_ptr<const v1::Operation> kernel;
  std::vector<Input> inputs;
};

// A program's plan as one task on one device. Its slots: the program's inputs, in order, then new
// buffers for its results, then, where there are others, one buffer that all intermediate results
// share, each at a place of its own for as long as a step may use it.
struct ProgramGraph {
  std::vector<GraphStep> steps;
  std::vector<wire::Code> codes;  // each once
  size_t num_inputs = 0;
  std::vector<bool> written;          // of the inputs: written in place, through a view
  std::vector<bool> passed;           // likewise: a kernel gets it, and may write it
  std::vector<int64_t> result_bytes;  // of the buffers for results
  int64_t scratch_bytes = 0;          // 0: there is no such buffer
  struct Output {
    size_t slot = 0;
    ArrayInfo info;
  };
  std::vector<Output> outputs;  // of the program
  double bytes = 0, flops = 0;

  size_t num_slots() const { return num_inputs + result_bytes.size() + (scratch_bytes > 0); }
};

// `plan` with what its kernels' modules are put into their `code`. Nothing, when the program cannot
// be one task: a step needs copies around it, or writes over what it reads.
std::optional<ProgramGraph> MakeGraph(const ProgramPlan& plan);

// A place for each of several intervals of time in one block of memory, none overlapping another
// that is alive at the same time.
class OffsetPlanner {
 public:
  static constexpr int64_t kAlignment = 256;
  // For what is alive from step `first` to step `last`, both included. `first` must not fall from
  // call to call.
  int64_t Add(int64_t bytes, size_t first, size_t last);
  int64_t total_bytes() const { return total_; }

 private:
  struct Block {
    int64_t offset, end;
    size_t last;
  };
  std::vector<Block> alive_;  // by offset
  int64_t total_ = 0;
};

}  // namespace stride::ops
