// A private strided that lives as long as one command.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "stride/client.h"

namespace stride::cli {

// Listens on a Unix socket in a new directory with mode 0700. The destructor ends the daemon
// (SIGTERM, later SIGKILL), reaps it and removes the directory. The daemon also watches this
// process and ends with it.
class PrivateDaemon {
 public:
  // Finds strided (FindDaemon), starts it and waits until it serves. UNAVAILABLE with the end of
  // its log otherwise. `arguments` follow its own.
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

// Path of strided: STRIDE_DAEMON, else in this executable's folder, else in PATH; empty when there
// is none.
std::string FindDaemon();

// Creates and returns the user's cache folder for private daemons: `stride` in $XDG_CACHE_HOME or
// ~/.cache. Empty unless only this user may write the folder, since the daemon executes code from
// it.
std::string UserCacheFolder();

}  // namespace stride::cli
