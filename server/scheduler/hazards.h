#pragma once

#include <memory>

#include "server/scheduler/task.h"

namespace stride::scheduler {

// Order among tasks that touch the same buffers: a reader waits for the writer before it, a writer
// for the writer and all readers before it. Not thread-safe: the caller has a transaction of the
// tasks' tenant.

// Enters the task's uses into its buffers and links it behind the unfinished accesses there.
void RegisterAccesses(const std::shared_ptr<Task>& task);

// Makes `task` wait for one more task, whatever their buffers.
void LinkBehind(const std::shared_ptr<Task>& task, const std::shared_ptr<store::Access>& access);

// Takes a finished task out of its buffers and off its dependents, which are returned for another
// look.
TaskList ReleaseAccesses(Task& task);

// Whether `later`, which comes after `task`, uses content that `task` is to write.
bool NeedsOutputOf(const Task& later, const Task& task);

// First error among the buffers whose content the task needs, or of a task that was to write them.
absl::Status FirstInputError(const Task& task);

// Whether it writes an input of the loop or branch that it is a piece of, and the error of that.
bool WritesHeld(const Task& task);
absl::Status WritesInputOfBody(const Task& task);

// Whether a second run would give the same result: everything it writes, it makes afresh.
bool IsRepeatable(const Task& task);

}  // namespace stride::scheduler
