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
#include "server/base/surroundings.h"
#include "server/base/unique_fd.h"

namespace stride::audit {

// One line of the audit log. No data of arrays, no source text, no tokens. Empty texts and numbers
// of 0 are left out.
struct Record {
  absl::Time time = WallNow();
  std::string tenant;
  std::string identity;  // which credential: `token:laptop`
  std::string peer;      // as gRPC names it: `ipv4:10.0.0.7:51234`
  std::string event;     // the method, `ComputeService/Run`, or `job`
  std::string resource;  // `tenants/t/jobs/j`
  std::string device;    // `devices/{id}`, several separated by commas
  double device_seconds = 0;
  int64_t num_operations = 0;
  int64_t bytes_up = 0, bytes_down = 0;
  std::string outcome;  // `OK` or another status code
  std::string reason;   // of google.rpc.ErrorInfo
};

// Without its end of line.
std::string ToJson(const Record& record);

// Appends records to a file on a thread of its own. A disk that cannot keep up or is full costs
// lines, which are counted and told in a line of their own, never time of a caller. Thread-safe.
class AuditLog {
 public:
  static constexpr size_t kMaxWaiting = 10000;

  // Makes the file with mode 0600.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(std::string path);
  // Writes what waits.
  ~AuditLog();

  void Write(Record record);
  // Opens the path anew, as after a rotation; goes on with the old file where that fails.
  void Reopen();
  int64_t num_dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  AuditLog(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  void Run();
  void Append(const std::string& text, int64_t num_lines);

  const std::string path_;
  UniqueFd file_;             // the writer thread's
  int64_t dropped_told_ = 0;  // likewise
  std::atomic<int64_t> dropped_{0};
  absl::Mutex mutex_;
  std::deque<Record> waiting_ ABSL_GUARDED_BY(mutex_);
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride::audit
