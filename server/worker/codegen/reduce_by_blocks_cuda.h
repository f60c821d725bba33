#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/launch_abi.h"

// A reduction by blocks (ops/reduce_by_blocks.h) as launches for a GPU: block loops compute values,
// the plain reduction combines them, block loops finish the results. Values of some results, or of
// some parts of one result, are computed at a time, so that they need little memory and mostly stay
// in the device's cache. Pure functions; any thread.
namespace stride::codegen {

// One launch of a sequence.
struct BlocksStep {
  enum class Kind {
    kBlocks,  // in the block loops' module, entry ops::kBlocksEntry
    kReduce,  // in the plain reduction's module, entry kReduceEntry
  } kind = Kind::kBlocks;
  LaunchShape shape;
  LaunchBlock block;
  bool last = false;
};

class ReduceByBlocksCuda {
 public:
  // `launch`: with `by_blocks` and at least one result. `value_bytes`: limit for values in memory
  // at a time, except that a part of one result, and 32 columns side by side, are never divided.
  ReduceByBlocksCuda(wire::ReduceLaunch launch, int num_multiprocessors, uint64_t value_bytes);

  // Device memory for the launches, aligned to 256 bytes, any content.
  uint64_t scratch_bytes() const { return results_at_ + result_bytes_; }

  // Calls `run` for each launch in order, until one fails. `addresses`: of the inputs, then the
  // output. `arrivals`: as for PackReduce; a failure may leave its counters nonzero.
  absl::Status ForEachStep(absl::Span<const uint64_t> addresses, uint64_t scratch,
                           uint64_t arrivals,
                           absl::FunctionRef<absl::Status(BlocksStep& step)> run) const;

 private:
  // Results with consecutive indices: a range along each kept axis.
  struct Box {
    wire::ReduceLaunch launch;
    std::vector<uint64_t> addresses;
    int64_t num_results = 0;
  };
  struct Places {
    uint64_t values, results, partials, arrivals;
  };

  void ChooseBox(int64_t most_results);
  Box BoxAt(const std::vector<int64_t>& begin, absl::Span<const uint64_t> addresses) const;
  absl::Status RunBox(const Box& box, const Places& places, bool last,
                      absl::FunctionRef<absl::Status(BlocksStep& step)> run) const;
  absl::Status RunParts(const Box& box, const Places& places, int64_t first_split,
                        int64_t num_splits, bool last,
                        absl::FunctionRef<absl::Status(BlocksStep& step)> run) const;

  const wire::ReduceLaunch launch_;
  const int num_multiprocessors_;
  bool columns_ = false;
  ReduceShape shape_;           // shape of the whole reduction
  int64_t num_reduced_ = 1;     // elements of one result
  bool reads_input_ = false;    // the values are the unchanged input
  bool writes_output_ = false;  // the results are the unchanged output
  std::vector<int64_t> box_;    // extents along the kept axes
  int64_t splits_at_once_ = 1;
  // scratch offsets after the values
  uint64_t partials_at_ = 0, results_at_ = 0, result_bytes_ = 0;
};

}  // namespace stride::codegen
