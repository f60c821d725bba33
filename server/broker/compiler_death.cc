#include "server/broker/compiler_death.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/wire/exit_code.h"

namespace stride::broker {
namespace {

// The machine may be short of memory for a while.
constexpr int kMaxKills = 3;
constexpr int kMaxOthers = 2;
// On a machine that is slower than an idle one by this factor, compilations time out.
constexpr int kMostSlowdown = 5;

}  // namespace

CompilerDeath DeathOf(const ChildExit& exit) {
  if (exit.by_signal) {
    if (exit.code == SIGKILL) return CompilerDeath::kKilled;
    return exit.code == SIGXCPU ? CompilerDeath::kTime : CompilerDeath::kCrash;
  }
  switch (exit.code) {
    case wire::kOutOfMemoryExit:
      return CompilerDeath::kMemory;
    case wire::kNoSandboxExit:
    case wire::kNoThreadExit:
      return CompilerDeath::kNoStart;
    default:
      return CompilerDeath::kCrash;
  }
}

void CompilerVerdict::Died(CompilerDeath death, bool fresh) {
  last_ = death;
  if (death == CompilerDeath::kKilled) {
    tries_again_ = ++num_kills_ < kMaxKills;
  } else {
    if (fresh) ++num_others_;
    tries_again_ = num_others_ < kMaxOthers;
  }
}

absl::Status CompilerVerdict::status(absl::Duration time) const {
  switch (last_) {
    case CompilerDeath::kNone:
      return absl::OkStatus();
    case CompilerDeath::kKilled:
      return MakeError(
          absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
          "compilers were killed from outside, or for lack of memory, over this source");
    case CompilerDeath::kMemory:
      return MakeError(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_COMPILE_FAILED,
                       "compiling this source needs more memory than one compilation may use");
    case CompilerDeath::kTime:
      return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                       absl::StrCat("compiling this source took longer than a compilation may: ",
                                    absl::FormatDuration(time)));
    case CompilerDeath::kNoStart:
      return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                      "no compiler could be started on this machine; try again", absl::Seconds(1));
    case CompilerDeath::kCrash:
      return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                       "the compiler process died on this source, and so did a fresh one");
    case CompilerDeath::kLie:
      return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                       "the compiler process sent an answer that makes no sense and was stopped");
  }
  return absl::InternalError("unreachable");
}

absl::Duration WaitedForProcessor(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/schedstat"));
  int64_t ran = 0, waited = 0;  // ns
  return file >> ran >> waited ? absl::Nanoseconds(waited) : absl::ZeroDuration();
}

absl::Duration ClockTimeFor(absl::Duration timeout, absl::Duration waited) {
  return std::min(timeout + waited, timeout * kMostSlowdown);
}

}  // namespace stride::broker
