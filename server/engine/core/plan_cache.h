#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/types/span.h"
#include "server/base/ids.h"
#include "server/broker/compiled_module.h"
#include "server/engine/core/first_tier.h"
#include "server/ops/partial_results.h"
#include "server/ops/plan.h"
#include "server/ops/plan_key.h"

namespace stride::engine {

struct Planned;

// Further plans of an operation on sharded arrays (sharded.cc), which every call shares.
struct SpreadPlans {
  // A reduction: how it is split, and its plans without the last step, by the input that they
  // store.
  std::shared_ptr<const ops::PartialResults> split;
  std::array<std::shared_ptr<const Planned>, ops::kMaxFinishInputs> without_finish;
  // How its partial results become the whole's, and of what: the latest of them.
  std::shared_ptr<const Planned> combine;
  std::vector<ops::Input> partials;
  std::vector<ops::PartPlace> places;
  int axis = 0;
};

// The state of a plan's code on one target.
struct PlannedCode {
  // While a task or a cache holds it.
  std::weak_ptr<const broker::CompiledModule> module;
  // The plain reduction of a reduction by blocks, while it is held.
  std::weak_ptr<const broker::CompiledModule> plain;
  // Elements that ran by blocks, since the code was not compiled; 0: none.
  int64_t ran_by_blocks = 0;
  bool requested = false;  // from the compiler, while it runs by blocks
  // Whether the code came compiled with the product; unset: not known yet.
  std::optional<bool> is_precompiled;
  std::optional<FirstTier> first_tier;  // made when it is first asked for
};

// A plan, and what was found out about it since. Shared by the tasks of equal operations.
struct Planned {
  ops::Plan plan;
  // How each output lies, for the arrays that are made by it.
  std::vector<SharedInfo> outputs;
  // By target. The tenant's transactions guard it and the next.
  mutable std::map<std::string, PlannedCode> codes;
  mutable SpreadPlans spread;
  // The part of a task's journal record that depends on the plan, made at the first task; empty if
  // it is too large to cache. Any thread may use both.
  mutable absl::once_flag record_made;
  mutable std::string record;
};

inline std::shared_ptr<Planned> MakePlanned(ops::Plan plan) {
  auto planned = std::make_shared<Planned>();
  planned->outputs.assign(plan.outputs.begin(), plan.outputs.end());
  planned->plan = std::move(plan);
  return planned;
}
// That of a task which runs nothing.
std::shared_ptr<const Planned> NoPlan();

// Plans of the operations that come again and again: to find one costs a tenth of making it.
// Not thread-safe.
class PlanCache {
 public:
  // By the bytes of their keys (ops::PlanKey).
  std::shared_ptr<const Planned> Find(std::string_view key) const;
  void Keep(std::string_view key, std::shared_ptr<const Planned> planned);

 private:
  // Looked up by views of keys.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };
  std::unordered_map<std::string, std::shared_ptr<const Planned>, Hash, std::equal_to<>> plans_;
};

}  // namespace stride::engine
