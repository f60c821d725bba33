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

// What a replay of a graph runs, one after another. Run on the compute thread, any number of times.
struct GraphWork {
  struct Step {
    std::string label;
    Work work;
  };
  std::vector<Step> steps;
};

// A graph that the daemon has brought, and what it was lowered to for the places where it ran
// lately: a client that calls a program again and again uses few. The command loop's thread alone.
class LoadedGraph {
 public:
  explicit LoadedGraph(wire::Graph graph) : graph_(std::move(graph)) {}

  absl::StatusOr<std::shared_ptr<const GraphWork>> Lower(const LoweringContext& context,
                                                         const wire::GraphLaunch& launch);
  // What it keeps holds on to arenas and modules: to be called when one of them goes.
  void Forget() { kept_.clear(); }

 private:
  absl::StatusOr<std::shared_ptr<const GraphWork>> LowerAt(
      const LoweringContext& context, const std::vector<ops::Location>& slots) const;
  struct Kept {
    std::vector<ops::Location> slots;
    std::shared_ptr<const GraphWork> work;
  };
  const wire::Graph graph_;
  std::list<Kept> kept_;  // the last used first
};

// The error of a step of a graph, as a client is to read it.
absl::Status OfStep(const absl::Status& status, const std::string& label, size_t index);

}  // namespace stride::cpu
