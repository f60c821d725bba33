#pragma once

#include <atomic>
#include <cstdint>
#include <set>

namespace stride::wire {

// The first bytes of the page that a worker shares with the daemon. The worker (on a GPU: the
// stream or the kernel itself) writes, the daemon reads, also after the worker died: it then tells
// which task was the first not to complete. All zero at the start. Nothing here is trusted beyond
// choosing which job is told that it was running when its worker died.
struct StatusPage {
  // Sequence of the last task that completed. A GPU writes the low 32 bits; tasks in flight are far
  // fewer than 2^32.
  std::atomic<uint32_t> completed_sequence;
  // Sequence of the last task that was begun (CPU) or handed to the driver (GPU).
  std::atomic<uint32_t> started_sequence;
  // Grows whenever the worker's command loop turns, and while its device is at work, since a driver
  // may hold the loop until a kernel ends; lets a silent worker be told from a busy one.
  std::atomic<uint64_t> heartbeat;
  // Tasks that ended without having done their work, since they failed, or since they were taken
  // out and touched nothing: each one's sequence, at that modulo the number of places, before
  // completed_sequence comes to it. What the worker told of them may have been lost with a daemon.
  static constexpr int kNumUndone = 448;  // more than are ever in one worker's queue
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

// The sequences marked so, of them the low 32 bits.
struct Undone {
  std::set<uint32_t> failed, taken_out;

  // Whether one of a task's launches, `first` to `last`, failed.
  bool Failed(uint64_t first, uint64_t last) const {
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
      if (failed.count(static_cast<uint32_t>(sequence)) > 0) return true;
    }
    return false;
  }
  // A task is taken out as a whole.
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

// Whether a mark of the page, which has the low 32 bits, has come to this task.
inline bool AtOrBefore(uint64_t sequence, uint32_t mark) {
  return static_cast<int32_t>(mark - static_cast<uint32_t>(sequence)) >= 0;
}

}  // namespace stride::wire
