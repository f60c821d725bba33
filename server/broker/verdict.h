#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/broker/child_process.h"

namespace stride::broker {

// Why a worker ended, in words and reasons for clients: no number of a process, no address, no
// path. Pure functions.
//
// KERNEL_FAULT (FAILED_PRECONDITION): the code that was running is to blame. WORKER_LOST (ABORTED):
// nothing says so.

// The process ended without a report. `in_task`: the status page says that a task was running; a
// fault signal outside any task is the worker's own. OK when it ended as it was asked to.
absl::Status JudgeExit(const ChildExit& exit, bool in_task, bool was_asked_to_end);

// It sent what no worker sends. `what` is for the log.
absl::Status JudgeBadEvent(std::string_view what);

// A fault of a kernel with the place where its assert failed; `assertion` as ErrorRelay has it. Any
// other status stays as it is.
absl::Status WithAssertion(const absl::Status& fault, std::string_view assertion);

// It gave no sign of life, did not answer, or did not exit.
absl::Status JudgeStuck(std::string_view what, absl::Duration time);

// It could not be sent what it was to do.
absl::Status JudgeUnreachable(const absl::Status& why);

}  // namespace stride::broker
