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

// Launches several kernels at once as a graph in which each kernel follows the previous one. Each
// of 16 small kernels then costs the launching thread 1.0 us instead of 4.1 us (one H200 host). A
// graph of each length is created once. For each batch its kernels and parameters are updated,
// which does not affect a launch in flight.
//
// Not thread-safe: used by the command loop.
class LaunchBatch {
 public:
  static constexpr size_t kMost = 16;

  LaunchBatch(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {}
  LaunchBatch(const LaunchBatch&) = delete;
  LaunchBatch& operator=(const LaunchBatch&) = delete;

  // Two to kMost launches, each of which marks its end. On error none of them was launched.
  absl::Status Launch(absl::Span<EmittedLaunch> launches);
  // Call before modules are unloaded: drops the graphs, which name their kernels.
  void Forget();

 private:
  struct Chain {
    DriverGraph graph;  // the graph of `nodes`
    GraphExecutable executable;
    std::vector<CUgraphNode> nodes;
  };
  absl::StatusOr<Chain> Make(absl::Span<EmittedLaunch> launches);

  const Driver& driver_;
  const CUstream stream_;
  std::array<Chain, kMost + 1> chains_;  // by length
};

}  // namespace stride::cuda
