#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/broker/worker.h"
#include "server/scheduler/region.h"

namespace stride::scheduler {

// Copies between a region and device memory, which the worker makes itself: several under way, in
// order. The region's bytes stay where they are when a worker dies, so that what failed can simply
// be sent to its successor. One thread at a time.
class RegionCopies {
 public:
  struct Piece {
    uint64_t arena_offset = 0;
    uint64_t region_offset = 0;
    uint64_t size = 0;
  };
  // Large enough to run at the device's rate, small enough that others get their turn.
  static constexpr int64_t kPieceBytes = int64_t{16} << 20;

  // `worker` has mapped the region (Region::MapIn) and the arena.
  RegionCopies(std::shared_ptr<broker::Worker> worker, std::shared_ptr<Region> region,
               bool to_device, uint64_t arena);
  // Waits until nothing touches the region any more.
  ~RegionCopies();

  // How many are under way or have not been taken.
  size_t num_pieces() const { return pieces_.size(); }
  static constexpr size_t kMaxPieces = 4;

  // Sends a copy. No more than kMaxPieces.
  void Send(Piece piece);
  // Waits for the oldest, and takes it off if it was made.
  absl::StatusOr<Piece> TakeFirst();
  // After an error: waits for all that are under way, and takes those that were not made, in order.
  std::vector<Piece> TakeLost();

 private:
  struct State {
    explicit State(Piece piece) : piece(piece) {}
    const Piece piece;
    absl::Mutex mutex;
    bool done ABSL_GUARDED_BY(mutex) = false;
    absl::Status status ABSL_GUARDED_BY(mutex);
  };
  static absl::Status Await(State& state);

  const std::shared_ptr<broker::Worker> worker_;
  const std::shared_ptr<Region> region_;
  const bool to_device_;
  const uint64_t arena_;
  std::deque<std::shared_ptr<State>> pieces_;
};

}  // namespace stride::scheduler
