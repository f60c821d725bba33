// A strided of our own, for the length of one command.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "stride/client.h"

namespace stride::cli {

// Runs on a Unix socket in a fresh directory that only this user may enter. Destruction ends the
// daemon (SIGTERM, later SIGKILL), waits for it and removes the directory. The daemon also watches
// this process and ends when it dies.
class PrivateDaemon {
 public:
  // Finds strided (STRIDE_DAEMON, else beside this executable, else in PATH), starts it and waits
  // until it answers. UNAVAILABLE with the end of its log when it does not.
  // `arguments` come after its own.
  static Result<std::unique_ptr<PrivateDaemon>> Start(
      const Cancellation& cancellation, const std::vector<std::string>& arguments = {});
  ~PrivateDaemon();
  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;

  const std::string& address() const { return address_; }

 private:
  PrivateDaemon() = default;
  Result<void> Spawn(const std::string& executable, const std::vector<std::string>& more);
  Result<void> WaitUntilServing(const Cancellation& cancellation);
  bool Exited();
  std::string LogTail() const;

  std::string directory_;
  std::string address_;
  pid_t pid_ = -1;
};

// Where strided is; empty when nowhere.
std::string FindDaemon();

// The user's folder for what the next private daemon can use again, made where it is missing:
// `stride` in $XDG_CACHE_HOME, else in ~/.cache. Empty where there is none that this user alone may
// write: code from it is run.
std::string UserCacheFolder();

}  // namespace stride::cli
