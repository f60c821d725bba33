// A real strided with its real workers, for tests: its own Unix socket, chosen flags.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stride/client.h"
#include "tests/support/await.h"
#include "tests/support/daemon/device_kind.h"

namespace stride::testing {

// The devices of a daemon under test, of DeviceKind(). A machine with fewer GPUs provides those it
// has.
struct Devices {
  int count = 1;
  int cpu_threads = 1;  // cores per device; 0: all cores
};

// Starts in the constructor, which returns once the daemon reports that it serves, and otherwise
// throws std::runtime_error with its log. The destructor kills it, and prints the log if the test
// has failed. Its workers and compilers die with it. Thread-safe except for Wait.
class Daemon {
 public:
  // `flags` follow `--listen`, `--log-format=text` and those that choose the devices. Its programs
  // are those in this program's folder; workers those in $STRIDE_TEST_WORKER_DIR if set.
  // `environment` entries are NAME=value.
  explicit Daemon(std::vector<std::string> flags = {}, Devices devices = {},
                  std::vector<std::string> environment = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // `unix:/tmp/.../s`
  const std::string& address() const { return address_; }
  // A folder that is removed with the daemon.
  const std::string& folder() const { return folder_; }
  // With a separate session. Only gRPC if $STRIDE_TEST_LOCAL_CALLS is `no`.
  Client Connect() const;

  // Ids of the daemon's processes that serve a device, busy ones and spares, and of those that
  // compile.
  std::vector<pid_t> Workers() const { return Children("--serve"); }
  std::vector<pid_t> Compilers() const { return Children("--compile"); }

  // The process that serves: with `--supervise` the latest child of the one that was started.
  pid_t ServingPid() const;
  // How many daemons have reported that they serve.
  int TimesReady() const;
  bool WaitReady(int times, std::chrono::milliseconds time);
  pid_t pid() const { return pid_; }

  void Signal(int signal) const;
  // The exit code, or minus the signal that ended it; nullopt if it still runs after that time.
  std::optional<int> Wait(std::chrono::milliseconds time);
  // Returns true once the log contains the text.
  bool WaitForLog(const std::string& text, std::chrono::milliseconds time);
  std::string Log() const;

 private:
  std::vector<pid_t> Children(const std::string& argument) const;
  void Spawn(std::vector<std::string> arguments, std::vector<std::string> environment);
  void ReadLog(int fd);

  std::string folder_, address_;
  pid_t pid_ = -1;
  bool ended_ = false;
  std::thread reader_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string log_;         // guarded by mutex_
  bool log_ended_ = false;  // guarded by mutex_
};

}  // namespace stride::testing
