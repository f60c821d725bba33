#pragma once

#include <atomic>
#include <cstdint>
#include <set>

namespace stride::wire {

// The start of the page that a worker shares with the daemon. The worker (on a GPU: the stream or
// the kernel) writes it, and the daemon reads it, also after the worker's death: it then names the
// first task that did not complete. All zero at the start. It is not trusted: it only decides which
// job's error says that the job was running when its worker died.
struct StatusPage {
  // Sequence of the last completed task. A GPU writes the low 32 bits; far fewer than 2^32 tasks
  // are in flight.
  std::atomic<uint32_t> completed_sequence;
  // Sequence of the last task that was started (CPU) or passed to the driver (GPU).
  std::atomic<uint32_t> started_sequence;
  // Incremented on each turn of the worker's command loop, and while its device works, since a
  // driver may block the loop until a kernel ends. Distinguishes a hung worker from a busy one.
  std::atomic<uint64_t> heartbeat;
  // Sequences of tasks that did not do their work: they failed, or were removed from the queue and
  // touched no memory. Index: the sequence modulo the array's size. Written before
  // completed_sequence reaches the task. Needed when the worker's results were lost with a daemon.
  static constexpr int kNumUndone = 448;  // more than a worker's queue ever holds
  std::atomic<uint32_t> failed[kNumUndone];
  std::atomic<uint32_t> taken_out[kNumUndone];
};

inline constexpr uint64_t kStatusPageBytes = 4096;
static_assert(sizeof(StatusPage) <= kStatusPageBytes);

inline void MarkFailed(StatusPage& page, uint64_t sequence) {
  page.failed[sequence % StatusPage::kNumUndone].store(static_cast<uint32_t>(sequence));
}
inline void MarkTakenOut(StatusPage& page, uint64_t sequence) {
  page.taken_out[sequence % StatusPage::kNumUndone].store(static_cast<uint32_t>(sequence));
}

// The sequences marked on a page, low 32 bits.
struct Undone {
  std::set<uint32_t> failed, taken_out;

  // Whether one of the task's launches, `first` to `last`, failed.
  bool Failed(uint64_t first, uint64_t last) const {
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
      if (failed.count(static_cast<uint32_t>(sequence)) > 0) return true;
    }
    return false;
  }
  // A task is removed as a whole.
  bool TakenOut(uint64_t sequence) const {
    return taken_out.count(static_cast<uint32_t>(sequence)) > 0;
  }
};

inline Undone UndoneIn(const StatusPage& page) {
  Undone undone;
  for (const std::atomic<uint32_t>& sequence : page.failed) undone.failed.insert(sequence.load());
  for (const std::atomic<uint32_t>& sequence : page.taken_out)
    undone.taken_out.insert(sequence.load());
  undone.failed.erase(0);
  undone.taken_out.erase(0);
  return undone;
}

// Whether `mark`, the low 32 bits of a sequence on the page, has reached this task.
inline bool AtOrBefore(uint64_t sequence, uint32_t mark) {
  return static_cast<int32_t>(mark - static_cast<uint32_t>(sequence)) >= 0;
}

}  // namespace stride::wire
