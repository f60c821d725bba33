#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/wire/status_page.h"

// What becomes of the tasks in the queue of a worker that is gone, alone or with its daemon. One
// rule for both: a daemon that starts in a dead one's place knows tasks by their records, one whose
// worker died has them. Pure functions; any thread. docs/architecture.md.
namespace stride::scheduler {

// A task as its worker had it.
struct QueuedTask {
  uint64_t first_sequence = 0, last_sequence = 0;  // of its launches
  bool repeatable = false;  // it changes nothing in place, and was not tried too often
  bool cancelled = false;   // it is to end without running, if the worker had not begun it
  bool running = false;     // it was under way: it has not ended, whatever the page says
  bool at_fault = false;    // and it ended the worker, or was to be ended with it
  struct Use {
    uint64_t buffer = 0;  // 0: none
    bool write = false, fresh = false;
  };
  absl::InlinedVector<Use, 3> uses;
};

// How far the worker came, as its status page tells.
struct QueueProgress {
  uint32_t completed = 0, started = 0;
  wire::Undone undone;
};

enum class Fate {
  kAgain,  // as if it had never been sent; one that is cancelled ends so
  kDone,   // it has run: its result is as good as its input
  kLost,
};

// One for each of `queue`, which is in the order of its sequences.
std::vector<Fate> FatesOf(absl::Span<const QueuedTask> queue, const QueueProgress& progress);

}  // namespace stride::scheduler
