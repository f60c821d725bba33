#pragma once

#include <cuda.h>

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"
#include "server/worker/cuda/lower/emitted.h"

namespace stride::cuda {

// Hands several launches to the device at once, as a graph in which each kernel follows the one
// before it: of 16 small kernels each costs the launching thread 1.0 us then, and 4.1 us by
// launches of their own (one H200 host). A graph of each length is made once; for a batch its
// kernels and their parameters are set anew, which what runs of it does not see.
//
// Not thread-safe: the command loop's.
class LaunchBatch {
 public:
  static constexpr size_t kMost = 16;

  LaunchBatch(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {}
  LaunchBatch(const LaunchBatch&) = delete;
  LaunchBatch& operator=(const LaunchBatch&) = delete;

  // Two to kMost launches, each of which marks its end. On error none of them was launched.
  absl::Status Launch(absl::Span<EmittedLaunch> launches);
  // Modules go: no graph may name their kernels.
  void Forget();

 private:
  struct Chain {
    DriverGraph graph;  // whose nodes these are
    GraphExecutable executable;
    std::vector<CUgraphNode> nodes;
  };
  absl::StatusOr<Chain> Make(absl::Span<EmittedLaunch> launches);

  const Driver& driver_;
  const CUstream stream_;
  std::array<Chain, kMost + 1> chains_;  // by length
};

}  // namespace stride::cuda
