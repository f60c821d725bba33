#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/types/span.h"
#include "server/broker/compiled_module.h"
#include "server/ops/plan.h"

namespace stride::scheduler {

// A plan, and what was found out about it since. Shared by the tasks of equal operations.
struct Planned {
  ops::Plan plan;
  // Its compiled code by target, as long as somebody has it. Guarded by the engine's lock.
  mutable std::map<std::string, std::weak_ptr<const broker::CompiledModule>> modules;
};

inline std::shared_ptr<Planned> MakePlanned(ops::Plan plan) {
  return std::make_shared<Planned>(Planned{std::move(plan), {}});
}
// That of a task which runs nothing.
std::shared_ptr<const Planned> NoPlan();

// Plans of the operations that come again and again: to find one costs a tenth of making it. A plan
// depends on the operation and on how its arrays lie, never on what is in them or what they are
// called. Guarded by the engine's lock.
class PlanCache {
 public:
  // Equal for operations of equal plans. Empty: such plans are not kept, for they are rare, large,
  // or depend on more (kernels, programs).
  // Of arrays that are not there (scalars, new outputs) null is given.
  static std::string KeyOf(const v1::Operation& operation,
                           absl::Span<const ArrayInfo* const> inputs,
                           absl::Span<const ArrayInfo* const> existing);

  std::shared_ptr<const Planned> Find(const std::string& key) const;
  void Keep(std::string key, std::shared_ptr<const Planned> planned);

 private:
  std::unordered_map<std::string, std::shared_ptr<const Planned>> plans_;
};

}  // namespace stride::scheduler
