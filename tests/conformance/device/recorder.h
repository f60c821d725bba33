#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/worker/runtime/device.h"

namespace stride::conformance {

// Records a device's reports and lets a test wait for them. A report that takes more than a minute
// is an error instead of a hang.
class JournalWriter : public worker::Completions {
 public:
  struct Task {
    uint64_t sequence = 0;
    absl::Status status;
    double run_seconds = 0;
  };

  // `fatal_fd`: where Fatal writes "SEQUENCE CODE TEXT" before it ends the process; -1: standard
  // error.
  explicit JournalWriter(int fatal_fd = -1) : fatal_fd_(fatal_fd) {}

  void TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                bool more) override;
  void TasksCancelled(uint64_t sequence, bool taken) override;
  void CopyDone(uint64_t id, const absl::Status& status) override;
  void Printed(uint64_t sequence, const PrintedText& printed) override;
  [[noreturn]] void Fatal(uint64_t sequence, const absl::Status& status,
                          bool context_lost) override;

  absl::Status AwaitTask(uint64_t sequence);
  absl::Status AwaitCopy(uint64_t id);
  // Replies to Cancel so far, by the first task.
  std::multimap<uint64_t, bool> cancelled();
  // In order of arrival.
  std::vector<Task> tasks();
  int num_copies();
  // All text that tasks printed.
  PrintedText printed();

 private:
  const int fatal_fd_;
  absl::Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Status> task_status_ ABSL_GUARDED_BY(mutex_);
  std::multimap<uint64_t, bool> cancelled_ ABSL_GUARDED_BY(mutex_);
  PrintedText printed_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Status> copies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::conformance
