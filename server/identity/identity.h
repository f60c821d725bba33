#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/timer.h"
#include "server/identity/tenant_table.h"

namespace stride::identity {

// Maps callers to tenants by the tenants file, and reads it again when it changes (looked at every
// second) or when it is told to. A file with a mistake is refused as a whole: what was read before
// stays in force, and the log says which line. Thread-safe.
//
// What a reload takes away is refused from the next call on; a stream that was let in goes on.
class Identity {
 public:
  struct Options {
    std::function<void(const std::string&)> log = [](const std::string&) {};
    absl::Duration interval = absl::Seconds(1);
  };
  // Fails when the file is bad now.
  static absl::StatusOr<std::unique_ptr<Identity>> Open(std::string path, Options options);
  // Waits for a reload under way.
  ~Identity() { timer_.Stop(); }

  std::shared_ptr<const TenantTable> table() const;
  std::optional<Principal> FromToken(std::string_view token) const;
  // Names as TenantTable has them, the most telling first.
  std::optional<Principal> FromCertificate(const std::vector<std::string>& names) const;

  // Calls `changed` now and after every change of the table, on the thread that read it. It must
  // not call back. One at most.
  void Follow(std::function<void(const TenantTable&)> changed);

  // Reads the file even if it looks the same.
  absl::Status Reload();

 private:
  // What changes when the file does: device, inode, size, and time to the nanosecond.
  using Stamp = std::tuple<dev_t, ino_t, off_t, int64_t, int64_t>;
  static Stamp StampOf(const std::string& path);

  Identity(std::string path, Options options)
      : path_(std::move(path)), options_(std::move(options)) {}
  void Watch();
  absl::Status Read();

  const std::string path_;
  const Options options_;
  absl::Mutex reading_;  // held by the thread that reads; before mutex_
  Stamp stamp_ ABSL_GUARDED_BY(reading_);
  std::function<void(const TenantTable&)> changed_ ABSL_GUARDED_BY(reading_);
  mutable absl::Mutex mutex_;
  std::shared_ptr<const TenantTable> table_ ABSL_GUARDED_BY(mutex_);
  Timer timer_;
};

}  // namespace stride::identity
