#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/wire/status_page.h"

// Disposition of the tasks in the queue of a worker that is gone, alone or with its daemon. One
// rule serves both: a new daemon knows the tasks by their records, a daemon whose worker died has
// them. Pure functions; any thread. docs/architecture.md.
namespace stride::engine {

// A task in the worker's queue.
struct QueuedTask {
  uint64_t first_sequence = 0, last_sequence = 0;  // its launches
  bool repeatable = false;  // changes nothing in place, and was not tried too often
  bool cancelled = false;   // ends without running unless the worker had begun it
  bool running = false;     // was running, so it has not ended, whatever the page says
  bool at_fault = false;    // was running and ended the worker, or was ended with it
  struct Use {
    uint64_t buffer = 0;  // 0: none
    bool write = false, fresh = false;
  };
  absl::InlinedVector<Use, 3> uses;
};

// The worker's progress, from its status page.
struct QueueProgress {
  uint32_t completed = 0, started = 0;
  wire::Undone undone;
};

enum class TaskDisposition {
  kAgain,  // as if never sent: runs again, or ends where it was cancelled
  kDone,   // has run; its result is as valid as its input
  kLost,
};

// Returns one disposition for each task of `queue`, which is in order of sequence.
std::vector<TaskDisposition> DispositionsOf(absl::Span<const QueuedTask> queue,
                                            const QueueProgress& progress);

}  // namespace stride::engine
