#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/broker/child_process.h"

namespace stride::broker {

// Why a compiler process ended or gave no answer.
enum class CompilerDeath {
  kNone,
  kKilled,   // SIGKILL: another process, or the kernel for lack of memory
  kMemory,   // the memory bound of one compilation
  kTime,     // its processor time, or the time limit of the answer
  kNoStart,  // it ended before it could read anything: no sandbox, no threads
  kCrash,    // a signal, or an exit code of its own
  kLie,      // a malformed answer
};

CompilerDeath DeathOf(const ChildExit& exit);

// Decides whether a request is retried in a fresh process, or the source is at fault. A source that
// kills one fresh process also kills the next; a busy machine that kills one seldom kills two.
// Pure.
class CompilerVerdict {
 public:
  // A process died. `fresh`: it had compiled nothing before. The death of a used process is no
  // evidence against this source: it may have died idle, or from the state of earlier sources.
  void Died(CompilerDeath death, bool fresh);
  bool may_try_again() const { return tries_again_; }
  // The last death as an error for the client.
  absl::Status status(absl::Duration time) const;

 private:
  int num_kills_ = 0;
  int num_others_ = 0;  // other deaths of fresh processes
  CompilerDeath last_ = CompilerDeath::kNone;
  bool tries_again_ = true;
};

// How long a process has waited for a processor so far, as the kernel counts; 0 if unknown.
absl::Duration WaitedForProcessor(pid_t pid);

// The wall-clock limit of a compiler that may take `timeout` on an idle machine and has waited for
// a processor for `waited`. Up to a bound, the wait does not count against the source.
absl::Duration ClockTimeFor(absl::Duration timeout, absl::Duration waited);

}  // namespace stride::broker
