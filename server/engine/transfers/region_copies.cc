#include "server/engine/transfers/region_copies.h"

#include <utility>

#include "server/base/environment.h"

namespace stride::engine {

RegionCopies::RegionCopies(std::shared_ptr<broker::Worker> worker, std::shared_ptr<Region> region,
                           bool to_device, uint64_t arena)
    : worker_(std::move(worker)),
      region_(std::move(region)),
      to_device_(to_device),
      arena_(arena) {}

RegionCopies::~RegionCopies() { TakeLost(); }

void RegionCopies::Send(Piece piece) {
  auto state = std::make_shared<State>(piece);
  pieces_.push_back(state);
  // The callback does not own the region: it may run on the worker's reader thread, and the last
  // owner's release blocks.
  worker_->CopyRegion(to_device_, arena_, piece.arena_offset, region_->id(), piece.region_offset,
                      piece.size, [state](absl::Status status) {
                        absl::MutexLock lock(&state->mutex);
                        state->done = true;
                        state->status = std::move(status);
                      });
}

absl::Status RegionCopies::Await(State& state) {
  absl::MutexLock lock(&state.mutex);
  stride::Await(state.mutex, absl::Condition(&state.done), SteadyTime::InfiniteFuture());
  return state.status;
}

absl::StatusOr<RegionCopies::Piece> RegionCopies::TakeFirst() {
  if (absl::Status status = Await(*pieces_.front()); !status.ok()) return status;
  Piece piece = pieces_.front()->piece;
  pieces_.pop_front();
  return piece;
}

std::vector<RegionCopies::Piece> RegionCopies::TakeLost() {
  std::vector<Piece> lost;
  for (auto& state : std::exchange(pieces_, {})) {
    if (!Await(*state).ok()) lost.push_back(state->piece);
  }
  return lost;
}

}  // namespace stride::engine
