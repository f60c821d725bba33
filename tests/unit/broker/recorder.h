#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/environment.h"
#include "server/broker/worker.h"

namespace stride::broker {

// Records the events of a worker's callbacks, for a test to wait on. Must outlive the worker's
// reader thread.
class JournalWriter {
 public:
  WorkerCallbacks callbacks() {
    return {.tasks_done =
                [this](absl::Span<const wire::TaskResult> results) {
                  absl::MutexLock lock(&mutex_);
                  results_.insert(results_.end(), results.begin(), results.end());
                },
            .printed =
                [this](uint64_t sequence, std::string_view text, uint64_t dropped_lines) {
                  absl::MutexLock lock(&mutex_);
                  printed_.push_back({sequence, std::string(text), dropped_lines, results_.size()});
                },
            .cancelled =
                [this](uint64_t sequence, bool taken) {
                  absl::MutexLock lock(&mutex_);
                  cancelled_.push_back({sequence, taken, results_.size()});
                },
            .died =
                [this](const WorkerDeath& death) {
                  absl::MutexLock lock(&mutex_);
                  results_at_death_ = results_.size();
                  death_ = death;
                  ++num_deaths_;
                }};
  }

  std::function<void(absl::Status)> copy_done() {
    return [this](absl::Status status) {
      absl::MutexLock lock(&mutex_);
      copies_.push_back(std::move(status));
    };
  }

  std::vector<wire::TaskResult> WaitForResults(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return results_.size() >= count; };
    Await(mutex_, absl::Condition(&there), Now() + kPatience);
    return results_;
  }

  struct Printed {
    uint64_t sequence;
    std::string text;
    uint64_t dropped_lines;
    size_t results_before;
  };
  std::vector<Printed> printed() {
    absl::MutexLock lock(&mutex_);
    return printed_;
  }

  std::vector<absl::Status> WaitForCopies(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return copies_.size() >= count; };
    Await(mutex_, absl::Condition(&there), Now() + kPatience);
    return copies_;
  }

  struct Cancelled {
    uint64_t sequence;
    bool taken;
    size_t results_before;
  };
  std::vector<Cancelled> WaitForCancelled(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return cancelled_.size() >= count; };
    Await(mutex_, absl::Condition(&there), Now() + kPatience);
    return cancelled_;
  }

  // Returns nullopt if the worker did not die in time.
  std::optional<WorkerDeath> WaitForDeath() {
    absl::MutexLock lock(&mutex_);
    auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return death_.has_value(); };
    Await(mutex_, absl::Condition(&there), Now() + kPatience);
    return death_;
  }

  int num_deaths() {
    absl::MutexLock lock(&mutex_);
    return num_deaths_;
  }

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(20);
  absl::Mutex mutex_;
  std::vector<Printed> printed_ ABSL_GUARDED_BY(mutex_);
  std::vector<wire::TaskResult> results_ ABSL_GUARDED_BY(mutex_);
  std::vector<Cancelled> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> copies_ ABSL_GUARDED_BY(mutex_);
  std::optional<WorkerDeath> death_ ABSL_GUARDED_BY(mutex_);
  size_t results_at_death_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_deaths_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace stride::broker
