#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/file_watch.h"
#include "server/identity/tenant_table.h"

namespace stride::identity {

// Maps callers to tenants by the tenants file. A thread checks the file every second and reads it
// again once it has changed and settled, or on request. A file with a mistake is refused as a
// whole: the previous content stays in force, and the log names the line. A file without any tenant
// is refused too, since it is probably being written. Thread-safe.
//
// A credential that a reload removes is refused from the next call on; accepted streams continue.
class Identity {
 public:
  struct Options {
    std::function<void(const std::string&)> log = [](const std::string&) {};
    absl::Duration interval = absl::Seconds(1);
  };
  // Fails when the file is invalid now.
  static absl::StatusOr<std::unique_ptr<Identity>> Open(std::string path, Options options);
  // Waits for a reload in progress.
  ~Identity() { watch_.Stop(); }

  std::shared_ptr<const TenantTable> table() const;
  std::optional<Principal> FromToken(std::string_view token) const;
  // Names in TenantTable's form, the most specific first.
  std::optional<Principal> FromCertificate(const std::vector<std::string>& names) const;

  // Calls `changed` now and after each change of the table, on the thread that read it. It must not
  // call back into this object. At most one follower.
  void Follow(std::function<void(const TenantTable&)> changed);

  // Reads the file even if it seems unchanged.
  absl::Status Reload();

 private:
  Identity(std::string path, Options options)
      : path_(std::move(path)), options_(std::move(options)), watch_({path_}) {}
  // Reads the file and replaces the table in force.
  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  absl::Status ReloadNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  void Use(std::shared_ptr<const TenantTable> table);

  const std::string path_;
  const Options options_;
  absl::Mutex reading_;  // held by the thread that reads; before mutex_
  std::function<void(const TenantTable&)> changed_ ABSL_GUARDED_BY(reading_);
  mutable absl::Mutex mutex_;
  std::shared_ptr<const TenantTable> table_ ABSL_GUARDED_BY(mutex_);
  FileWatch watch_;
};

}  // namespace stride::identity
