#include "server/worker/cpu/lower/lower_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stride::cpu {
namespace {

// A client ahead of the device has many calls in flight, each with operands elsewhere in memory.
constexpr size_t kMaxKept = 128, kMaxKeptSteps = 16 << 10;

bool Same(const std::vector<ops::Location>& slots, const wire::GraphLaunch& launch) {
  if (slots.size() != static_cast<size_t>(launch.slots_size())) return false;
  for (size_t i = 0; i < slots.size(); ++i) {
    const wire::Location& slot = launch.slots(static_cast<int>(i));
    if (slots[i].arena != slot.arena() || slots[i].offset != slot.offset()) return false;
  }
  return true;
}

}  // namespace

absl::Status OfStep(const absl::Status& status, const std::string& label, size_t index) {
  if (status.ok()) return status;
  absl::Status told(status.code(), absl::StrCat("step ", index, " of the program (", label,
                                                "): ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { told.SetPayload(type, payload); });
  return told;
}

absl::StatusOr<std::shared_ptr<const GraphWork>> LoadedGraph::Lower(
    const LoweringContext& context, const wire::GraphLaunch& launch) {
  auto known = std::find_if(kept_.begin(), kept_.end(),
                            [&](const Kept& kept) { return Same(kept.slots, launch); });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return known->work;
  }
  std::vector<ops::Location> slots;
  for (const wire::Location& slot : launch.slots()) slots.push_back({slot.arena(), slot.offset()});
  auto work = LowerAt(context, slots);
  if (!work.ok()) return work.status();
  kept_.push_front({std::move(slots), *work});
  const auto steps = static_cast<size_t>(graph_.steps_size());
  if (kept_.size() > kMaxKept || kept_.size() * steps > kMaxKeptSteps) kept_.pop_back();
  return work;
}

absl::StatusOr<std::shared_ptr<const GraphWork>> LoadedGraph::LowerAt(
    const LoweringContext& context, const std::vector<ops::Location>& slots) const {
  auto all = std::make_shared<GraphWork>();
  for (int i = 0; i < graph_.steps_size(); ++i) {
    wire::Task step = graph_.steps(i);
    ops::Bind(&step, slots);
    auto work = cpu::Lower(context, step);
    if (!work.ok()) return OfStep(work.status(), step.label(), i);
    all->steps.push_back({step.label(), *std::move(work)});
  }
  return std::shared_ptr<const GraphWork>(std::move(all));
}

}  // namespace stride::cpu
