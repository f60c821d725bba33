#include "server/engine/core/run_time_model.h"

#include <algorithm>
#include <cmath>

#include "absl/hash/hash.h"

namespace stride::engine {
namespace {

constexpr double kLaunchSeconds = 10e-6;  // launch and synchronisation, docs/measurements.md
constexpr double kNewShare = 0.25;        // weight of the latest run: converges in about ten
constexpr size_t kMaxEntries = 100000;    // beyond this the model is cleared, to bound its memory

uint64_t Key(const wire::DeviceDescription& device, const std::string& code_key,
             const ops::Plan& plan) {
  int size_class = std::ilogb(std::max(1.0, plan.bytes + plan.flops));
  return absl::HashOf(device.id(), code_key, static_cast<int>(plan.task.kind_case()), size_class);
}

}  // namespace

double RunTimeModel::Estimate(const wire::DeviceDescription& device, const std::string& code_key,
                              const ops::Plan& plan) const {
  auto it = average_.find(Key(device, code_key, plan));
  if (it != average_.end()) return it->second;
  double bandwidth = std::max(1e9, device.memory_bytes_per_second());
  // A multiprocessor or core does some tens of billions of operations a second. That is good enough
  // to order devices until a run was measured.
  double arithmetic = 2e10 * std::max(1, device.num_compute_units());
  return kLaunchSeconds + plan.bytes / bandwidth + plan.flops / arithmetic;
}

void RunTimeModel::Record(const wire::DeviceDescription& device, const std::string& code_key,
                          const ops::Plan& plan, double seconds) {
  if (average_.size() >= kMaxEntries) average_.clear();
  auto [it, first] = average_.emplace(Key(device, code_key, plan), seconds);
  if (!first) it->second += kNewShare * (seconds - it->second);
}

}  // namespace stride::engine
