#include "tests/conformance/device/recorder.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"

namespace stride::conformance {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

}  // namespace

void JournalWriter::TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                             bool) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back({sequence, status, run_seconds});
  task_status_[sequence] = status;
}

void JournalWriter::TasksCancelled(uint64_t sequence, bool taken) {
  absl::MutexLock lock(&mutex_);
  cancelled_.emplace(sequence, taken);
}

std::multimap<uint64_t, bool> JournalWriter::cancelled() {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void JournalWriter::CopyDone(uint64_t id, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  copies_[id] = status;
}

void JournalWriter::Printed(uint64_t, const PrintedText& printed) {
  absl::MutexLock lock(&mutex_);
  printed_.text += printed.text;
  printed_.dropped_lines += printed.dropped_lines;
}

PrintedText JournalWriter::printed() {
  absl::MutexLock lock(&mutex_);
  return printed_;
}

void JournalWriter::Fatal(uint64_t sequence, const absl::Status& status, bool) {
  const std::string text = absl::StrCat(sequence, " ", static_cast<int>(status.code()), " ",
                                        std::string(status.message()));
  if (fatal_fd_ < 0) {
    std::fprintf(stderr, "the device reported a fatal error: %s\n", text.c_str());
  } else if (write(fatal_fd_, text.data(), text.size()) < 0) {
    std::perror("reporting a fatal error");
  }
  _exit(1);
}

absl::Status JournalWriter::AwaitTask(uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  auto arrived = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return task_status_.count(sequence) != 0;
  };
  if (!Await(mutex_, absl::Condition(&arrived), Now() + kPatience)) {
    return absl::DeadlineExceededError(absl::StrCat("no report of task ", sequence));
  }
  return task_status_[sequence];
}

absl::Status JournalWriter::AwaitCopy(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  auto arrived = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return copies_.count(id) != 0; };
  if (!Await(mutex_, absl::Condition(&arrived), Now() + kPatience)) {
    return absl::DeadlineExceededError(absl::StrCat("no report of copy ", id));
  }
  return copies_[id];
}

std::vector<JournalWriter::Task> JournalWriter::tasks() {
  absl::MutexLock lock(&mutex_);
  return tasks_;
}

int JournalWriter::num_copies() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(copies_.size());
}

}  // namespace stride::conformance
