#pragma once

#include <atomic>
#include <cstdint>
#include <set>

namespace stride::wire {

// The first bytes of the page that a worker shares with the daemon. The worker (on a GPU: the
// stream itself) writes, the daemon reads, also after the worker died: it then tells which task was
// the first not to complete. All zero at the start. Nothing here is trusted beyond choosing which
// job is told that it was running when its worker died.
struct StatusPage {
  // Sequence of the last task that completed. A GPU writes the low 32 bits; tasks in flight are far
  // fewer than 2^32.
  std::atomic<uint32_t> completed_sequence;
  // Sequence of the last task that was begun (CPU) or handed to the driver (GPU).
  std::atomic<uint32_t> started_sequence;
  // Grows whenever the worker's command loop turns, and while its device is at work, since a driver
  // may hold the loop until a kernel ends; lets a silent worker be told from a busy one.
  std::atomic<uint64_t> heartbeat;
  // Tasks that ended without having done their work, since they failed or were taken out: each
  // one's sequence, at that modulo the number of places, before completed_sequence comes to it.
  // What the worker told of them may have been lost with a daemon.
  static constexpr int kNumUndone = 512;  // more than are ever in one worker's queue
  std::atomic<uint32_t> undone[kNumUndone];
};

inline constexpr uint64_t kStatusPageBytes = 4096;
static_assert(sizeof(StatusPage) <= kStatusPageBytes);

inline void MarkUndone(StatusPage& page, uint64_t sequence) {
  page.undone[sequence % StatusPage::kNumUndone].store(static_cast<uint32_t>(sequence));
}

// The sequences marked so, of them the low 32 bits.
inline std::set<uint32_t> UndoneIn(const StatusPage& page) {
  std::set<uint32_t> all;
  for (const std::atomic<uint32_t>& sequence : page.undone) all.insert(sequence.load());
  all.erase(0);
  return all;
}

// Whether one of the launches from `first` to `last` is among them.
inline bool AnyUndone(const std::set<uint32_t>& undone, uint64_t first, uint64_t last) {
  for (uint64_t sequence = first; sequence <= last; ++sequence) {
    if (undone.count(static_cast<uint32_t>(sequence)) > 0) return true;
  }
  return false;
}

// Whether a mark of the page, which has the low 32 bits, has come to this task.
inline bool AtOrBefore(uint64_t sequence, uint32_t mark) {
  return static_cast<int32_t>(mark - static_cast<uint32_t>(sequence)) >= 0;
}

}  // namespace stride::wire
