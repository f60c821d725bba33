#include "server/ops/program_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace stride::ops {
namespace {

// A larger graph would occupy a worker too long and with too much memory.
constexpr size_t kMaxSteps = 1000;

// Storage of the arrays of one or more handles.
struct Storage {
  int input = -1;  // the program's input; -1: allocated by the daemon
  int64_t bytes = 0;
  bool is_result = false;
  size_t first = 0, last = 0;  // first and last step that use it
  Location place;
};

bool Overlap(const ArrayInfo& a, const ArrayInfo& b) {
  const ByteExtent x = Extent(a), y = Extent(b);
  return x.begin < y.end && y.begin < x.end;
}

class GraphMaker {
 public:
  explicit GraphMaker(const ProgramPlan& plan) : plan_(plan) {}

  std::optional<ProgramGraph> Make() {
    if (plan_.steps.size() > kMaxSteps || !FindStorages()) return std::nullopt;
    PlaceStorages();
    for (size_t i = 0; i < plan_.steps.size(); ++i) AddStep(plan_.steps[i]);
    if (graph_.steps.empty()) return std::nullopt;
    for (size_t j = 0; j < plan_.outputs.size(); ++j) {
      const Storage& storage = storages_[storage_of_.at(plan_.output_handles[j])];
      graph_.outputs.push_back({storage.place.arena, plan_.outputs[j]});
    }
    return std::move(graph_);
  }

 private:
  bool FindStorages() {
    for (uint64_t handle : plan_.input_handles) {
      storage_of_[handle] = storages_.size();
      info_of_[handle] = plan_.inputs[storages_.size()];
      storages_.push_back({.input = static_cast<int>(storages_.size())});
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const ProgramStep& step = plan_.steps[i];
      if (!step.plan.has_value()) return false;
      const bool is_view = step.plan->is_view;
      if (!is_view && step.plan->task.kind_case() == wire::Task::KIND_NOT_SET) return false;
      for (size_t j = 0; j < step.outputs.size(); ++j) {
        const uint64_t handle = step.outputs[j];
        if (!step.existing[j]) {
          if (is_view) {
            storage_of_[handle] = storage_of_.at(step.inputs[0]);
          } else {
            storage_of_[handle] = storages_.size();
            storages_.push_back({.bytes = step.plan->outputs[j].size_bytes(), .first = i});
          }
        }
        info_of_[handle] = step.plan->outputs[j];
        storages_[storage_of_.at(handle)].last = i;
      }
      for (uint64_t handle : step.inputs) {
        if (handle != 0) storages_[storage_of_.at(handle)].last = i;
      }
      if (OverwritesItself(step)) return false;
      const std::string& kind = step.plan->required_kind;
      if (kind.empty()) continue;
      if (!graph_.required_kind.empty() && graph_.required_kind != kind) return false;
      graph_.required_kind = kind;
    }
    for (uint64_t handle : plan_.output_handles) storages_[storage_of_.at(handle)].is_result = true;
    return true;
  }

  // Returns whether a step needs copies, as the scheduler decides for single operations: an output
  // overlaps another output, or an input that is not read element by element.
  bool OverwritesItself(const ProgramStep& step) const {
    if (step.operation.has_kernel_launch()) return false;
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      if (!step.existing[j]) continue;
      const size_t storage = storage_of_.at(step.outputs[j]);
      const ArrayInfo& out = info_of_.at(step.outputs[j]);
      for (uint64_t handle : step.inputs) {
        if (handle == 0 || storage_of_.at(handle) != storage) continue;
        const ArrayInfo& input = info_of_.at(handle);
        if (!Overlap(input, out)) continue;
        if (!step.plan->task.has_elementwise() || input != out) return true;
      }
      for (size_t k = 0; k < j; ++k) {
        if (step.existing[k] && storage_of_.at(step.outputs[k]) == storage &&
            Overlap(info_of_.at(step.outputs[k]), out))
          return true;
      }
    }
    return false;
  }

  void PlaceStorages() {
    graph_.num_inputs = plan_.input_handles.size();
    graph_.written.resize(graph_.num_inputs);
    graph_.passed.resize(graph_.num_inputs);
    size_t slot = graph_.num_inputs;
    for (Storage& storage : storages_) {
      if (storage.input >= 0) {
        storage.place = {static_cast<uint64_t>(storage.input), 0};
      } else if (storage.is_result) {
        storage.place = {slot++, 0};
        graph_.result_bytes.push_back(storage.bytes);
      }
    }
    OffsetPlanner planner;
    for (Storage& storage : storages_) {
      if (storage.input >= 0 || storage.is_result) continue;
      const int64_t offset = planner.Add(storage.bytes, storage.first, storage.last);
      storage.place = {slot, static_cast<uint64_t>(offset)};
    }
    graph_.scratch_bytes = planner.total_bytes();
  }

  void AddStep(const ProgramStep& step) {
    const Plan& plan = *step.plan;
    if (plan.is_view) return;
    GraphStep made;
    for (uint64_t handle : step.inputs)
      made.places.push_back(handle == 0 ? Location{} : PlaceOf(handle));
    for (uint64_t handle : step.outputs) {
      const Location place = PlaceOf(handle);
      made.places.push_back(place);
      if (place.arena < graph_.num_inputs) graph_.written[place.arena] = true;
    }
    for (int output : plan.zeroed_outputs) {
      GraphStep fill;
      fill.places = {made.places[step.inputs.size() + output]};
      fill.task.mutable_zero_fill()->set_size(plan.outputs[output].size_bytes());
      fill.task.set_label("zeros");
      if (fill.task.zero_fill().size() > 0) graph_.steps.push_back(std::move(fill));
    }
    made.task = plan.task;
    if (plan.code.has_value()) made.code = CodeIndex(*plan.code);
    if (step.operation.has_kernel_launch()) {
      auto kernel = std::make_shared<v1::Operation>(step.operation);
      kernel->mutable_kernel_launch()->clear_code();
      made.kernel = std::move(kernel);
      for (const Location& place : made.places) {
        if (place.arena < graph_.num_inputs) graph_.passed[place.arena] = true;
      }
      for (uint64_t handle : step.inputs)
        made.inputs.push_back(handle == 0 ? Input() : Input(info_of_.at(handle)));
    }
    graph_.bytes += plan.bytes;
    graph_.flops += plan.flops;
    graph_.steps.push_back(std::move(made));
  }

  Location PlaceOf(uint64_t handle) const { return storages_[storage_of_.at(handle)].place; }

  int CodeIndex(const wire::Code& code) {
    const auto [found, added] =
        code_index_.emplace(code.SerializeAsString(), static_cast<int>(graph_.codes.size()));
    if (added) graph_.codes.push_back(code);
    return found->second;
  }

  const ProgramPlan& plan_;
  ProgramGraph graph_;
  std::vector<Storage> storages_;
  std::map<uint64_t, size_t> storage_of_;  // by handle
  std::map<uint64_t, ArrayInfo> info_of_;
  std::map<std::string, int> code_index_;
};

}  // namespace

int64_t OffsetPlanner::Add(int64_t bytes, size_t first, size_t last) {
  alive_.erase(std::remove_if(alive_.begin(), alive_.end(),
                              [&](const Block& block) { return block.last < first; }),
               alive_.end());
  const int64_t size = std::max<int64_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
  int64_t offset = 0;
  auto before = alive_.begin();
  while (before != alive_.end() && before->offset - offset < size) {
    offset = before->end;
    ++before;
  }
  alive_.insert(before, {offset, offset + size, last});
  total_ = std::max(total_, offset + size);
  return offset;
}

std::optional<ProgramGraph> MakeGraph(const ProgramPlan& plan) { return GraphMaker(plan).Make(); }

}  // namespace stride::ops
