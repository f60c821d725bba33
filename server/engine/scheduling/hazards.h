#pragma once

#include <memory>

#include "server/engine/core/task.h"

namespace stride::engine {

// Order among tasks that touch the same buffers: a reader waits for the writer before it, a writer
// for the writer and all readers before it. Not thread-safe: the caller has a transaction of the
// tasks' tenant.

// Registers the task's uses in its buffers, and makes it wait for the unfinished accesses there.
void RegisterAccesses(const std::shared_ptr<Task>& task);

// Makes `task` wait for one more access, whatever their buffers.
void LinkBehind(const std::shared_ptr<Task>& task, const std::shared_ptr<store::Access>& access);

// Removes a finished task from its buffers and from its dependents. Returns the dependents, which
// the caller evaluates.
TaskList ReleaseAccesses(Task& task);

// Whether `later`, which comes after `task`, uses content that `task` is to write.
bool NeedsOutputOf(const Task& later, const Task& task);

// First error among the buffers whose content the task needs, or of a task that was to write them.
absl::Status FirstInputError(const Task& task);

// Whether the task writes an input of the loop or branch that it is part of, and the error for
// that.
bool WritesHeld(const Task& task);
absl::Status WritesInputOfBody(const Task& task);

// Whether a second run gives the same result: the task overwrites all buffers that it writes.
bool IsRepeatable(const Task& task);

}  // namespace stride::engine
