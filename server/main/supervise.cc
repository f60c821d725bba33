#include "server/main/supervise.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <future>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/log.h"
#include "server/main/idle_memory.h"
#include "server/main/parent_watch.h"
#include "server/main/probe.h"

namespace stride {
namespace {

constexpr absl::Duration kLongestProbe = absl::Seconds(2);
// What is left to do when the drain is over: answers, workers.
constexpr absl::Duration kStopTime = absl::Seconds(10);

// The watchdog's turn: every half of its patience.
class Heartbeat {
 public:
  // A daemon that a stranger's certificate is asked of calls itself where none is.
  Heartbeat(const Config& config, const Notifier& notifier, Server* server)
      : notifier_(notifier),
        interval_(notifier.watchdog() / 2),
        server_(server),
        probe_(config.tls_cert.empty() ? Probe(server->addresses().front())
                                       : Probe([server] { return server->Connect(); })) {}

  int PollMillis() const {
    if (interval_ == absl::InfiniteDuration()) return -1;
    return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(next_ - absl::Now())));
  }

  void Beat() {
    if (interval_ == absl::InfiniteDuration() || absl::Now() < next_) return;
    if (!probe_.Answers(std::min(interval_ / 2, kLongestProbe))) {
      api::LogWarning("the daemon does not answer its own health call; the watchdog is not fed");
    } else if (!server_->Responds(interval_ / 2)) {
      api::LogWarning("the daemon's engine does not answer; the watchdog is not fed");
    } else {
      notifier_.Notify("WATCHDOG=1");
    }
    next_ = absl::Now() + interval_;
  }

 private:
  const Notifier& notifier_;
  const absl::Duration interval_;
  Server* const server_;
  Probe probe_;
  absl::Time next_ = absl::Now();
};

// Until a reason to stop; it is returned in words.
std::string WaitForEnd(const UniqueFd& parent, Signals& signals, Heartbeat& heartbeat,
                       Server& server) {
  pollfd polled[] = {{signals.fd(), POLLIN, 0}, {parent.valid() ? parent.get() : -1, POLLIN, 0}};
  IdleMemory memory;
  absl::Time look = absl::Now();
  for (;;) {
    heartbeat.Beat();
    if (absl::Now() >= look) {
      memory.Look();
      look = absl::Now() + IdleMemory::kInterval;
    }
    const int beat = heartbeat.PollMillis();
    const auto wait = static_cast<int>(absl::ToInt64Milliseconds(IdleMemory::kInterval));
    poll(polled, 2, beat < 0 ? wait : std::min(beat, wait));
    while (int signal = signals.Next()) {
      if (signal != SIGHUP) return strsignal(signal);
      api::LogInfo("SIGHUP: reading the tenants and opening the audit log anew");
      server.Reload();
    }
    if (polled[1].revents != 0) return "the parent process has ended";
  }
}

// How far the end has come; the draining thread tells.
struct Ending {
  std::atomic<bool> drained{false};   // accepted work has ended, or was given up
  std::atomic<bool> recorded{false};  // nothing is left that a successor, or a disk, is to have
};

// The work goes on in `draining`; a further signal means that a person does not want to wait. A
// drain that hangs past its time ends all the same, and so does what comes after it: when all is
// recorded, workers that a driver keeps for long are the kernel's to end.
void WaitForDrain(const Config& config, const Ending& ending, std::future<void>& draining,
                  Signals& signals) {
  absl::Time give_up = absl::Now() + config.drain_timeout + kStopTime;
  bool drained = false;
  while (draining.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    int signal = signals.Next();
    if (!drained && ending.drained) {
      drained = true;
      give_up = std::min(give_up, absl::Now() + kStopTime);
    }
    if (absl::Now() > give_up) {
      if (ending.recorded) {
        api::LogWarning("workers take long to end; they are left to the kernel");
        _exit(0);
      }
      api::LogError("stopping took too long; given up");
      _exit(1);
    }
    if (signal == 0 || signal == SIGHUP) continue;
    api::LogWarning("stopping at once");
    // Workers end with their sockets, and leave nothing behind.
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
              keeper::Keeper* keeper, std::unique_ptr<Server> server) {
  UniqueFd parent;
  if (config.parent_pid != 0) {
    auto watched = WatchProcess(config.parent_pid);
    if (!watched.ok()) {
      api::LogError(std::string(watched.status().message()));
      return 1;
    }
    parent = *std::move(watched);
  }
  Heartbeat heartbeat(config, notifier, server.get());
  api::LogInfo(ReadyLine(*server));
  keeper->Ready();
  notifier.Notify("READY=1\nSTATUS=serving");
  std::string reason = WaitForEnd(parent, signals, heartbeat, *server);
  api::LogInfo(absl::StrCat("draining: ", reason));
  notifier.Notify("STOPPING=1\nSTATUS=draining");
  Ending ending;
  std::future<void> draining = std::async(std::launch::async, [&] {
    server->Drain(absl::Now() + config.drain_timeout);
    ending.drained = true;
    server->StopRecording();
    ending.recorded = true;
    server.reset();
  });
  WaitForDrain(config, ending, draining, signals);
  api::LogInfo("stopped");
  return 0;
}

}  // namespace stride
