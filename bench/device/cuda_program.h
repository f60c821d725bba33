#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/device/cuda_harness.h"
#include "server/ops/program_graph.h"

namespace stride::bench {

// The plan of a stride.v1.Program's operations, given in protobuf's text format. The handles 1, 2,
// ... are `inputs`, `result` is the handle of the result; it may be an input, which is then written
// in place. Ends the process when there is no plan.
ops::ProgramGraph PlanOf(const std::string& operations, const std::vector<ArrayInfo>& inputs,
                         uint64_t result);

// Operations as the daemon plans a program of them, one task after another on the worker's CUDA
// device, in an arena of their own.
class CudaProgram {
 public:
  // Makes PlanOf(operations, inputs, result) ready. `harness` outlives the program.
  CudaProgram(CudaHarness& harness, const std::string& operations,
              const std::vector<ArrayInfo>& inputs, uint64_t result);
  ~CudaProgram() { harness_.DropArena(arena_); }
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  // As this process's own streams see them.
  CUdeviceptr Input(int i) const { return memory_.address() + offsets_[i]; }
  CUdeviceptr Result() const { return memory_.address() + offsets_[graph_.outputs[0].slot]; }
  // Zeros, with room for another result.
  CUdeviceptr Spare() const { return memory_.address() + size_; }
  const ArrayInfo& result() const { return graph_.outputs[0].info; }
  int num_tasks() const { return static_cast<int>(tasks_.size()); }

  // So often in a row, until the last task has been reported. The first failure of a task.
  absl::Status Run(int count);

 private:
  CudaHarness& harness_;
  ops::ProgramGraph graph_;
  std::vector<uint64_t> offsets_;  // by slot
  uint64_t size_ = 0;
  const uint64_t arena_;
  cuda::ArenaMapping memory_;
  std::vector<wire::Task> tasks_;
  Packet packet_;  // the last Run's
};

}  // namespace stride::bench
