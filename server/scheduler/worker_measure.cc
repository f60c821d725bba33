#include "server/scheduler/worker_measure.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {
namespace {

// With fewer workers the other processes of a device hide the cost.
constexpr int kLeastWorkers = 4;
constexpr double kLeastDeviceBytes = 256 << 20;
constexpr double kMostDeviceBytes = 4.0 * (1 << 30);
// The share of a device's memory that stays free: arrays and workers grow during a start.
constexpr double kDeviceReserve = 1.0 / 32;
constexpr double kHostReserve = 1.0 / 8;
// Workers sampled in each measurement.
constexpr int kSamples = 8;
// Processes and threads of the daemon, its compilers and other programs of its user.
constexpr int kOtherThreads = 512;

// Weights a new measurement by a quarter, since it varies with the current work.
void Blend(double measured, double* value) { *value += (measured - *value) / 4; }

}  // namespace

void WorkerCosts::DeviceUsed(int device, int64_t used, int64_t before, int64_t arena_bytes,
                             int num_workers) {
  if (num_workers < kLeastWorkers) return;
  const double each = static_cast<double>(used - before - arena_bytes) / num_workers;
  Blend(std::clamp(each, kLeastDeviceBytes, kMostDeviceBytes), &device_bytes_[device]);
}

void WorkerCosts::Measured(const std::vector<ProcessUse>& workers) {
  if (workers.empty()) return;
  double bytes = 0, threads = 0;
  for (const ProcessUse& worker : workers) {
    bytes += static_cast<double>(worker.private_bytes);
    threads += worker.num_threads;
  }
  const auto count = static_cast<double>(workers.size());
  Blend(std::max(bytes / count, 1.0 * (1 << 20)), &host_bytes_);
  Blend(std::max(threads / count, 1.0), &num_threads_);
}

std::optional<ProcessUse> ReadProcessUse(int pid) {
  ProcessUse use;
  std::ifstream memory(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0, resident = 0, shared = 0;
  if (!(memory >> size >> resident >> shared)) return std::nullopt;
  use.private_bytes = std::max<int64_t>(0, resident - shared) * sysconf(_SC_PAGESIZE);
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  // The name, in parentheses, may contain any character.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string field;
  for (int i = 3; i <= 20 && fields >> field; ++i) {
  }
  use.num_threads = std::atoi(field.c_str());
  return use;
}

void Scheduler::MeasureWorkers() {
  const int num_devices = core_->memory_place();
  std::vector<std::optional<int64_t>> used(num_devices);
  if (const auto& read = core_->options.device_memory_used) {
    for (int device = 0; device < num_devices; ++device)
      used[device] = read(core_->broker->devices()[device].id());
  }
  std::vector<int> pids;
  {
    GlobalTransaction transaction(*core_);
    lanes_.ForEach(transaction, [&](const Lane& lane) {
      const bool wanted = lane.worker != nullptr && lane.worker->pid() > 0;
      if (wanted && static_cast<int>(pids.size()) < kSamples) pids.push_back(lane.worker->pid());
    });
  }
  std::vector<ProcessUse> uses;
  for (int pid : pids) {
    if (std::optional<ProcessUse> use = ReadProcessUse(pid)) uses.push_back(*use);
  }
  GlobalTransaction transaction(*core_);
  costs_.Measured(uses);
  double host_arenas = static_cast<double>(memory_.arena_bytes(transaction, core_->memory_place()));
  const EngineOptions& options = core_->options;
  const int allowed = options.max_workers_of_device > 0 ? options.max_workers_of_device : INT_MAX;
  for (int device = 0; device < num_devices; ++device) {
    const wire::DeviceDescription& description = core_->broker->devices()[device];
    const auto arenas = static_cast<int64_t>(memory_.arena_bytes(transaction, device));
    if (description.host_memory()) {
      host_arenas += static_cast<double>(memory_.used_bytes(transaction, device));
      seats_.set_most(device, allowed);
      continue;
    }
    if (used[device].has_value()) {
      if (!device_used_before_[device].has_value()) device_used_before_[device] = used[device];
      costs_.DeviceUsed(device, *used[device], *device_used_before_[device], arenas,
                        seats_.num_taken(device));
    }
    const auto total = static_cast<double>(description.memory_bytes());
    const double before = static_cast<double>(device_used_before_[device].value_or(0));
    const double taken = before + static_cast<double>(arenas) + kDeviceReserve * total;
    seats_.set_most(device,
                    std::min(allowed, WorkersThatFit(total, taken, costs_.device_bytes(device))));
  }
  int most = INT_MAX;
  if (options.max_workers > 0) most = std::min(most, options.max_workers);
  if (options.host_memory_bytes > 0) {
    const auto total = static_cast<double>(options.host_memory_bytes);
    most = std::min(most,
                    WorkersThatFit(total, host_arenas + kHostReserve * total, costs_.host_bytes()));
  }
  if (options.max_processes > 0) {
    most = std::min(most, WorkersThatFit(static_cast<double>(options.max_processes), kOtherThreads,
                                         costs_.num_threads()));
  }
  seats_.set_most_of_all(most);
}

}  // namespace stride::scheduler
