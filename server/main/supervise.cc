#include "server/main/supervise.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/api/log.h"
#include "server/base/environment.h"
#include "server/main/idle_memory.h"
#include "server/main/parent_watch.h"
#include "server/main/probe.h"

namespace stride {
namespace {

// Time after the drain for the last answers and the workers' end.
constexpr absl::Duration kStopTime = absl::Seconds(10);
constexpr absl::Duration kDrainSigns = absl::Seconds(1);

// Notifies the service manager and the FdStore that the daemon is alive, each time after a call
// through the daemon's own socket and an answer of the engine. Runs on its own thread. Such a call
// may take as long as both permit: a starved machine is not a hung daemon.
class Heartbeat {
 public:
  // Where one address requires client certificates, the call uses one that does not.
  Heartbeat(const Config& config, const Notifier& notifier, fd_store::FdStore* fd_store,
            Server* server)
      : notifier_(notifier),
        fd_store_(fd_store),
        patience_(std::min(notifier.watchdog(), fd_store->patience())),
        server_(server),
        probe_(config.tls_cert.empty() ? Probe(server->addresses().front())
                                       : Probe([server] { return server->Connect(); })) {
    if (patience_ < absl::InfiniteDuration()) thread_ = std::thread([this] { Run(); });
  }
  ~Heartbeat() { Stop(); }

  // The daemon is about to end: no more calls are made.
  void BeginStop() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    probe_.Cancel();
  }
  // Also waits for a call to the engine.
  void Stop() {
    BeginStop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    absl::MutexLock lock(&mutex_);
    while (!stopping_) {
      mutex_.Unlock();
      const char* failure = Beat();
      mutex_.Lock();
      if (failure != nullptr && !stopping_) api::LogWarning(failure);
      Await(mutex_, absl::Condition(&stopping_), Now() + patience_ / 3);
    }
  }

  // Returns a description of the failure; null: none.
  const char* Beat() {
    if (!probe_.Answers(patience_))
      return "the daemon does not answer its own health call; the watchdog is not fed";
    if (!server_->Responds(patience_))
      return "the daemon's engine does not answer; the watchdog is not fed";
    notifier_.Notify("WATCHDOG=1");
    fd_store_->Alive();
    return nullptr;
  }

  const Notifier& notifier_;
  fd_store::FdStore* const fd_store_;
  const absl::Duration patience_;
  Server* const server_;
  Probe probe_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Blocks until a reason to stop; returns its description.
std::string WaitForEnd(const UniqueFd& parent, Signals& signals, Server& server) {
  pollfd polled[] = {{signals.fd(), POLLIN, 0}, {parent.valid() ? parent.get() : -1, POLLIN, 0}};
  IdleMemory memory;
  for (;;) {
    const absl::Duration wait = memory.Look();
    poll(polled, 2, static_cast<int>(absl::ToInt64Milliseconds(wait)));
    while (int signal = signals.Next()) {
      if (signal != SIGHUP) return strsignal(signal);
      api::LogInfo("SIGHUP: reading the tenants again and reopening the audit log");
      server.Reload();
    }
    if (polled[1].revents != 0) return "the parent process has ended";
  }
}

// Progress of the daemon's end; the draining thread sets it.
struct Ending {
  std::atomic<bool> drained{false};   // accepted work has ended or was abandoned
  std::atomic<bool> recorded{false};  // a later daemon or the disk needs no more data
};

// The work continues in `draining`; another signal requests an immediate stop. A drain ends at its
// time limit even if it hangs, and so does the rest of the shutdown: once all is recorded, the
// kernel ends workers that a driver blocks for long.
void WaitForDrain(const Config& config, const Ending& ending, std::future<void>& draining,
                  Signals& signals, fd_store::FdStore* fd_store) {
  SteadyTime give_up = Now() + config.drain_timeout + kStopTime, sign = Now();
  bool drained = false;
  while (draining.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    // The drain ends in bounded time by itself.
    if (Now() >= sign) {
      fd_store->Alive();
      sign = Now() + kDrainSigns;
    }
    int signal = signals.Next();
    if (!drained && ending.drained) {
      drained = true;
      give_up = std::min(give_up, Now() + kStopTime);
    }
    if (Now() > give_up) {
      if (ending.recorded) {
        api::LogWarning("workers take long to end; they are left to the kernel");
        _exit(0);
      }
      api::LogError("stopping took too long; given up");
      _exit(1);
    }
    if (signal == 0 || signal == SIGHUP) continue;
    api::LogWarning("stopping at once");
    // Workers end when their sockets close, and need no cleanup.
    _exit(128 + signal);
  }
}

std::string ReadyLine(const Server& server) {
  std::string line = absl::StrCat("ready pid=", getpid());
  for (const api::Address& address : server.addresses())
    absl::StrAppend(&line, " listening=", address.ToString());
  return line;
}

}  // namespace

int Supervise(const Config& config, const Notifier& notifier, Signals& signals,
              fd_store::FdStore* fd_store, std::unique_ptr<Server> server) {
  UniqueFd parent;
  if (config.parent_pid != 0) {
    auto watched = WatchProcess(config.parent_pid);
    if (!watched.ok()) {
      api::LogError(std::string(watched.status().message()));
      return 1;
    }
    parent = *std::move(watched);
  }
  api::LogInfo(ReadyLine(*server));
  fd_store->Ready();
  notifier.Notify("READY=1\nSTATUS=serving");
  Heartbeat heartbeat(config, notifier, fd_store, server.get());
  std::string reason = WaitForEnd(parent, signals, *server);
  api::LogInfo(absl::StrCat("draining: ", reason));
  notifier.Notify("STOPPING=1\nSTATUS=draining");
  heartbeat.BeginStop();
  Ending ending;
  std::future<void> draining = std::async(std::launch::async, [&] {
    server->Drain(Now() + config.drain_timeout);
    ending.drained = true;
    server->StopRecording();
    ending.recorded = true;
    heartbeat.Stop();
    server.reset();
  });
  WaitForDrain(config, ending, draining, signals, fd_store);
  api::LogInfo("stopped");
  return 0;
}

}  // namespace stride
