#include "server/broker/verdict.h"

#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/wire/exit_code.h"

namespace stride::broker {
namespace {

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Fault(std::string_view text) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT, text);
}

absl::Status Lost(std::string_view text) {
  return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, text);
}

// Empty for signals other than faults of running code.
std::string_view FaultOf(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
      return "the kernel made an illegal memory access";
    case SIGFPE:
      return "the kernel made an illegal arithmetic operation, such as an integer division by zero";
    case SIGILL:
    case SIGTRAP:
      return "the kernel ran an illegal instruction or a trap";
    case SIGABRT:
      return "the kernel failed an assertion";
    case SIGSYS:
      return "the kernel made a system call that is not allowed";
    default:
      return {};
  }
}

}  // namespace

absl::Status JudgeExit(const ChildExit& exit, bool in_task, bool was_asked_to_end) {
  if (was_asked_to_end && !exit.by_signal && exit.code == 0) return absl::OkStatus();
  if (!exit.by_signal && (exit.code == wire::kNoThreadExit || exit.code == wire::kNoSandboxExit))
    return SystemError(EUSERS, "a worker's threads and namespaces");
  if (!exit.by_signal) {
    return Lost(absl::StrCat("the worker process exited by itself, with code ", exit.code));
  }
  if (in_task && !FaultOf(exit.code).empty()) return Fault(FaultOf(exit.code));
  if (exit.code == SIGKILL) {
    return Lost("the worker process was killed from outside or for lack of memory");
  }
  return Lost(absl::StrCat("the worker process was ended by signal ", exit.code));
}

absl::Status JudgeBadEvent(std::string_view what) {
  return Lost(absl::StrCat(
      "the worker process sent a message that makes no sense and was stopped: ", ToAbsl(what)));
}

absl::Status WithAssertion(const absl::Status& fault, std::string_view assertion) {
  if (!absl::IsFailedPrecondition(fault) || assertion.empty()) return fault;
  absl::Status status(fault.code(), absl::StrCat(fault.message(), ": ", ToAbsl(assertion)));
  fault.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { status.SetPayload(type, payload); });
  return status;
}

absl::Status JudgeStuck(std::string_view what, absl::Duration time) {
  return Lost(absl::StrCat("the worker process was stopped: it ", ToAbsl(what), " for ",
                           absl::FormatDuration(time)));
}

absl::Status JudgeUnreachable(const absl::Status& why) {
  return Lost(absl::StrCat("the worker process was stopped: it could not be sent its commands: ",
                           why.message()));
}

}  // namespace stride::broker
