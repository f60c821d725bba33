#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/durable/usage_file.h"
#include "server/session/tenant_accounts.h"

namespace stride {

// Saves tenants' usage in the state folder, so that counts continue after a restart, a crash or a
// reboot. Owns the thread that writes the file every few seconds when something has changed; the
// destructor writes once more. A daemon that dies in between loses the counts since the last write.
class UsageWriter {
 public:
  struct Options {
    std::string folder;  // the state folder
    absl::Duration interval = absl::Seconds(5);
    // With more tenants than this the file has those whose counts changed last.
    size_t max_tenants = 10000;
    std::function<void(const std::string&)> log;
  };

  // Adds the file's counts to `accounts`, which must outlive the result. Null when nothing can be
  // saved. An unreadable file is renamed. Both are logged, and counts begin at 0.
  static std::unique_ptr<UsageWriter> Start(Options options, session::TenantAccounts* accounts);
  ~UsageWriter();
  UsageWriter(const UsageWriter&) = delete;
  UsageWriter& operator=(const UsageWriter&) = delete;

 private:
  // State at one check of the accounts.
  struct Entry {
    std::string counts;  // a v1::Usage without `time`
    absl::Time changed;
  };

  UsageWriter(Options options, std::unique_ptr<durable::UsageFile> file,
              session::TenantAccounts* accounts)
      : options_(std::move(options)), file_(std::move(file)), accounts_(accounts) {}
  // False: the file exists, cannot be read, and cannot be renamed.
  bool Load();
  absl::Status AddEarlier(const std::string& content);
  void Run();
  void Write();
  bool Look();
  std::string Content();

  const Options options_;
  const std::unique_ptr<durable::UsageFile> file_;
  session::TenantAccounts* const accounts_;
  // Used by the thread, then by the destructor.
  std::map<std::string, Entry> entries_;  // by tenant
  bool unwritten_ = false;
  bool failing_ = false;
  bool too_many_ = false;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride
