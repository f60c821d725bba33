#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/broker/worker.h"
#include "server/engine/service/region.h"

namespace stride::engine {

// Copies between a region and device memory that the worker makes itself: several in flight, in
// order. The region's bytes outlive a worker, so lost copies can be sent to the next one. One
// thread at a time.
class RegionCopies {
 public:
  struct Piece {
    uint64_t arena_offset = 0;
    uint64_t region_offset = 0;
    uint64_t size = 0;
  };
  // Large enough to run at the device's rate, small enough that other copies are not delayed for
  // long.
  static constexpr int64_t kPieceBytes = int64_t{16} << 20;

  // `worker` has mapped the region (Region::MapIn) and the arena.
  RegionCopies(std::shared_ptr<broker::Worker> worker, std::shared_ptr<Region> region,
               bool to_device, uint64_t arena);
  // Blocks until no copy uses the region any more.
  ~RegionCopies();

  // Copies that are in flight or were not taken yet.
  size_t num_pieces() const { return pieces_.size(); }
  static constexpr size_t kMaxPieces = 4;

  // Sends a copy. num_pieces() must be below kMaxPieces.
  void Send(Piece piece);
  // Blocks until the oldest copy has ended, and removes it from the list on success.
  absl::StatusOr<Piece> TakeFirst();
  // After an error: blocks until all copies have ended, and takes those that failed, in order.
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

}  // namespace stride::engine
