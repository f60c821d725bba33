#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/environment.h"
#include "server/base/unique_fd.h"

namespace stride::audit {

// One line of the audit log, without array data, source text or tokens. Empty texts and zeros are
// omitted.
struct Record {
  absl::Time time = WallNow();
  std::string tenant;
  std::string identity;  // the credential, such as `token:laptop`
  std::string peer;      // in gRPC's form: `ipv4:10.0.0.7:51234`
  std::string event;     // the method, `ComputeService/Run`, or `job`
  std::string resource;  // `tenants/t/jobs/j`
  std::string device;    // `devices/{id}`, several separated by commas
  double device_seconds = 0;
  int64_t num_operations = 0;
  int64_t bytes_up = 0, bytes_down = 0;
  std::string outcome;  // `OK` or another status code
  std::string reason;   // the reason in google.rpc.ErrorInfo
};

// Without a newline.
std::string ToJson(const Record& record);

// Appends records to a file on its own thread. A slow or full disk loses lines, which are counted
// and reported in a line of their own; it never blocks a caller. Thread-safe.
class AuditLog {
 public:
  static constexpr size_t kMaxWaiting = 10000;

  // Creates the file with mode 0600.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(std::string path);
  // Writes pending records.
  ~AuditLog();

  void Write(Record record);
  // Reopens the path, as after a rotation; keeps the old file if that fails.
  void Reopen();
  int64_t num_dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  AuditLog(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  void Run();
  void Append(const std::string& text, int64_t num_lines);

  const std::string path_;
  UniqueFd file_;             // used by the writer thread
  int64_t dropped_told_ = 0;  // dropped lines reported so far; used by the writer thread
  std::atomic<int64_t> dropped_{0};
  absl::Mutex mutex_;
  std::deque<Record> waiting_ ABSL_GUARDED_BY(mutex_);
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride::audit
