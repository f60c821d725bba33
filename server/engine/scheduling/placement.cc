#include "server/engine/scheduling/placement.h"

namespace stride::engine {

int ChooseDevice(absl::Span<const Candidate> candidates) {
  int best = -1;
  double best_finish = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.suitable) continue;
    // The transfer runs on the copy engine while the queue drains, so the run begins after the
    // later of both.
    double start = candidate.queued_seconds > candidate.transfer_seconds
                       ? candidate.queued_seconds
                       : candidate.transfer_seconds;
    double finish = start + candidate.run_seconds;
    if (best < 0 || finish < best_finish) {
      best = candidate.device;
      best_finish = finish;
    }
  }
  return best;
}

}  // namespace stride::engine
