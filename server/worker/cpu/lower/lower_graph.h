#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/bind.h"
#include "server/worker/cpu/lower/lowering.h"

namespace stride::cpu {

// The steps of one replay, run one after another on the compute thread. May be run any number of
// times.
struct GraphWork {
  struct Step {
    std::string label;
    Work work;
  };
  std::vector<Step> steps;
};

// A graph sent by the daemon, with a cache of its lowered work by operand addresses: a client that
// repeats a program uses few. Used by the command loop's thread alone.
class LoadedGraph {
 public:
  explicit LoadedGraph(wire::Graph graph) : graph_(std::move(graph)) {}

  absl::StatusOr<std::shared_ptr<const GraphWork>> Lower(const LoweringContext& context,
                                                         const wire::GraphLaunch& launch);
  // Clears the cache, which pins arenas and modules. Call when one of them is unloaded.
  void Forget() { kept_.clear(); }

 private:
  absl::StatusOr<std::shared_ptr<const GraphWork>> LowerAt(
      const LoweringContext& context, const std::vector<ops::Location>& slots) const;
  struct Kept {
    std::vector<ops::Location> slots;
    std::shared_ptr<const GraphWork> work;
  };
  const wire::Graph graph_;
  std::list<Kept> kept_;  // most recently used first
};

// The client's error for a failed step of a graph.
absl::Status OfStep(const absl::Status& status, const std::string& label, size_t index);

}  // namespace stride::cpu
