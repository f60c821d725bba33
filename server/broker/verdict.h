#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/broker/child_process.h"

namespace stride::broker {

// Why a worker ended, in texts and reasons for clients: no process number, no address, no path.
// Pure functions.
//
// KERNEL_FAULT (FAILED_PRECONDITION): the running code is at fault. WORKER_LOST (ABORTED): there is
// no evidence for that.

// The process ended without a report. `in_task`: the status page shows a running task; a fault
// signal outside of a task is the worker's own fault. OK when it ended after a request to end.
absl::Status JudgeExit(const ChildExit& exit, bool in_task, bool was_asked_to_end);

// It sent an invalid event. `what`: description for the log.
absl::Status JudgeBadEvent(std::string_view what);

// Adds the place of a failed assert to a kernel's fault; `assertion`: from ErrorRelay. Returns
// other statuses unchanged.
absl::Status WithAssertion(const absl::Status& fault, std::string_view assertion);

// It gave no sign of life, did not answer, or did not exit.
absl::Status JudgeStuck(std::string_view what, absl::Duration time);

// A command could not be sent to it.
absl::Status JudgeUnreachable(const absl::Status& why);

}  // namespace stride::broker
