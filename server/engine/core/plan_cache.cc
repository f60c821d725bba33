#include "server/engine/core/plan_cache.h"

#include <utility>

namespace stride::engine {
namespace {

// A plan takes a few kilobytes.
constexpr size_t kMaxPlans = 4096;

}  // namespace

std::shared_ptr<const Planned> NoPlan() {
  static const auto& none = *new std::shared_ptr<const Planned>(MakePlanned({}));
  return none;
}

std::shared_ptr<const Planned> PlanCache::Find(std::string_view key) const {
  auto found = plans_.find(key);
  return found != plans_.end() ? found->second : nullptr;
}

void PlanCache::Keep(std::string_view key, std::shared_ptr<const Planned> planned) {
  // Plans in use are found again at their next operation.
  if (plans_.size() >= kMaxPlans) plans_.clear();
  plans_.emplace(key, std::move(planned));
}

}  // namespace stride::engine
