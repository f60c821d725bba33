#include "server/fd_store/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/fd_store/fd_store.h"
#include "server/fd_store/packet.h"
#include "server/fd_store/supervisor_protocol.h"

namespace stride::fd_store {
namespace {

// A daemon that served for this long is restarted at once.
constexpr absl::Duration kServedLong = absl::Milliseconds(100);
constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(5);
// Period of the supervisor's checks for signs of life, and the most time that one check counts as
// silence: on a machine that runs neither process, the daemon is not at fault.
constexpr absl::Duration kLookInterval = absl::Seconds(1);
constexpr absl::Duration kLongestLook = absl::Seconds(2);
// The kernel kills workers with their daemon; this time is for processes that survive.
constexpr absl::Duration kOrphansTime = absl::Seconds(1);
constexpr size_t kReserved = 32;  // descriptors for the supervisor itself

size_t MaxKept() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > kReserved ? limit.rlim_cur - kReserved : 0;
}

class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options) : options_(std::move(options)) {
    for (NamedFd& entry : options_.passed) kept_.push_back(std::move(entry));
    options_.passed.clear();
  }

  absl::Status Prepare();
  // In the daemon's process: its exit code, to be returned at once. In the supervisor's: nullopt
  // while it goes on.
  std::optional<int> Start();
  std::optional<int> Run();

 private:
  int BeDaemon(UniqueFd socket, rlimit limit);
  void TakeSignals();
  void Forward(int signal);
  void Answer();
  void AnswerStore(const std::string& name, UniqueFd fd);
  void Reap();
  void HeardOf();
  int MillisToLook() const;
  void LookForLife();
  std::optional<int> Ended(int status);
  std::optional<int> PauseBeforeStart(SteadyTime until, bool for_orphans);

  SupervisorOptions options_;
  std::vector<NamedFd> kept_;
  size_t max_kept_ = 0;
  rlimit daemon_limit_{};
  UniqueFd signals_, socket_;
  pid_t child_ = -1;
  std::optional<int> child_status_;
  bool have_children_ = true;
  int ending_ = 0;           // the signal that asked for the end
  bool ever_ready_ = false;  // some daemon has served
  std::optional<SteadyTime> ready_time_;
  absl::Duration pause_ = absl::ZeroDuration();
  // The daemon serves and must send signs of life.
  bool watching_ = false;
  absl::Duration silence_;
  SteadyTime last_look_;
};

absl::Status Supervisor::Prepare() {
  getrlimit(RLIMIT_NOFILE, &daemon_limit_);
  max_kept_ = MaxKept();
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return absl::ErrnoToStatus(errno, "listening for signals");
  return absl::OkStatus();
}

std::optional<int> Supervisor::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    options_.log(absl::StrCat("no socket for the daemon, errno ", errno));
    return 1;
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  child_status_.reset();
  ready_time_.reset();
  watching_ = false;
  have_children_ = true;
  child_ = fork();
  if (child_ < 0) {
    options_.log(absl::StrCat("the daemon cannot be started, errno ", errno));
    return 1;
  }
  if (child_ == 0) {
    ours.Reset();
    return BeDaemon(std::move(theirs), daemon_limit_);
  }
  socket_ = std::move(ours);
  return std::nullopt;
}

int Supervisor::BeDaemon(UniqueFd socket, rlimit limit) {
  pid_t supervisor = getppid();
  prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  if (getppid() != supervisor) return 1;
  // Ctrl-C reaches only the supervisor, which passes it on: a second signal would mean an immediate
  // stop.
  setpgid(0, 0);
  setrlimit(RLIMIT_NOFILE, &limit);
  kept_.clear();
  socket_.Reset();
  signals_.Reset();
  // Other signals stay blocked: the daemon reads them from a descriptor.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ArmCrashPointsFromEnvironment();
  return options_.daemon(std::move(socket));
}

void Supervisor::TakeSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      Reap();
    } else {
      Forward(signal);
    }
  }
}

void Supervisor::Forward(int signal) {
  if (signal != SIGHUP) ending_ = signal;
  if (child_ > 0) kill(child_, signal);
}

void Supervisor::Reap() {
  for (;;) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    have_children_ = pid >= 0 || errno != ECHILD;
    if (pid <= 0) return;
    if (pid != child_) continue;
    child_ = -1;
    child_status_ = status;
  }
}

void Supervisor::Answer() {
  Packet packet;
  if (!ReceivePacket(socket_.get(), &packet).ok()) {
    socket_.Reset();  // the daemon is dying; SIGCHLD follows
    return;
  }
  std::string name = packet.text.substr(1);
  switch (packet.text[0]) {
    case kStore:
      AnswerStore(name, std::move(packet.fd));
      break;
    case kRemove:
      kept_.erase(std::remove_if(kept_.begin(), kept_.end(),
                                 [&](const NamedFd& entry) { return entry.name == name; }),
                  kept_.end());
      break;
    case kTake: {
      size_t index = 0;
      bool there = absl::SimpleAtoi(name, &index) && index < kept_.size();
      SendPacket(socket_.get(), there ? kKept + kept_[index].name : std::string(1, kNone),
                 there ? kept_[index].fd.get() : -1)
          .IgnoreError();
      break;
    }
    case kReady:
      ever_ready_ = true;
      ready_time_ = Now();
      watching_ = options_.patience < absl::InfiniteDuration();
      HeardOf();
      break;
    case kAlive:
      HeardOf();
      break;
  }
}

void Supervisor::HeardOf() {
  silence_ = absl::ZeroDuration();
  last_look_ = Now();
}

int Supervisor::MillisToLook() const {
  if (!watching_) return -1;
  const absl::Duration left = last_look_ + kLookInterval - Now();
  return static_cast<int>(
      std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
}

void Supervisor::LookForLife() {
  if (!watching_ || child_ <= 0 || Now() - last_look_ < kLookInterval) return;
  silence_ += std::min(Now() - last_look_, kLongestLook);
  last_look_ = Now();
  if (silence_ < options_.patience) return;
  options_.log(absl::StrCat("the daemon has not answered a call to itself for ",
                            absl::FormatDuration(options_.patience), "; it is killed"));
  watching_ = false;
  kill(child_, SIGKILL);
}

void Supervisor::AnswerStore(const std::string& name, UniqueFd fd) {
  STRIDE_CRASH_POINT("supervisor.store");
  auto found = std::find_if(kept_.begin(), kept_.end(),
                            [&](const NamedFd& entry) { return entry.name == name; });
  std::string answer(1, kDone);
  if (!fd.valid() || !IsName(name)) {
    answer = absl::StrCat(std::string(1, kRefused), "no descriptor or no name");
  } else if (found != kept_.end()) {
    found->fd = std::move(fd);
  } else if (kept_.size() >= max_kept_) {
    answer = absl::StrCat(std::string(1, kRefused), "it keeps as many as it may: ", max_kept_);
  } else {
    kept_.push_back({name, std::move(fd)});
  }
  SendPacket(socket_.get(), answer).IgnoreError();
}

std::optional<int> Supervisor::Ended(int status) {
  socket_.Reset();
  bool by_signal = WIFSIGNALED(status);
  int code = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 0 || ending_ != 0) return code;
  if (!by_signal && !ever_ready_) return code;
  bool served = ready_time_.has_value() && Now() - *ready_time_ >= kServedLong;
  pause_ = served ? absl::ZeroDuration() : std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  options_.log(absl::StrCat("the daemon ",
                            by_signal ? "was killed by signal " : "exited with code ",
                            by_signal ? WTERMSIG(status) : code, "; starting it again",
                            served ? "" : absl::StrCat(" in ", absl::FormatDuration(pause_))));
  NextCrashPoint();
  STRIDE_CRASH_POINT("supervisor.before_restart");
  // Wait for the dead daemon's children first: none may touch memory that the next daemon takes
  // over.
  if (auto end = PauseBeforeStart(Now() + kOrphansTime, /*for_orphans=*/true)) return end;
  return PauseBeforeStart(Now() + pause_, /*for_orphans=*/false);
}

std::optional<int> Supervisor::PauseBeforeStart(SteadyTime until, bool for_orphans) {
  for (;;) {
    TakeSignals();
    if (for_orphans) Reap();
    if (ending_ != 0) return 128 + ending_;
    if (for_orphans && !have_children_) return std::nullopt;
    int64_t left = absl::ToInt64Milliseconds(absl::Ceil(until - Now(), absl::Milliseconds(1)));
    if (left <= 0) return std::nullopt;
    pollfd entry{signals_.get(), POLLIN, 0};
    poll(&entry, 1, static_cast<int>(left));
  }
}

std::optional<int> Supervisor::Run() {
  for (;;) {
    pollfd polled[] = {{signals_.get(), POLLIN, 0},
                       {socket_.valid() ? socket_.get() : -1, POLLIN, 0}};
    poll(polled, 2, MillisToLook());
    if (polled[1].revents != 0) Answer();
    LookForLife();
    if (polled[0].revents != 0) TakeSignals();
    if (!child_status_.has_value()) continue;
    if (auto code = Ended(*child_status_)) return code;
    if (auto code = Start()) return code;
  }
}

}  // namespace

int RunSupervisor(SupervisorOptions options) {
  Supervisor supervisor(std::move(options));
  ArmCrashPointsFromEnvironment();
  if (!supervisor.Prepare().ok()) return 1;
  if (auto code = supervisor.Start()) return *code;
  return *supervisor.Run();
}

}  // namespace stride::fd_store
