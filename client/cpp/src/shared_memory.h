// A client's regions: one that transfers copy through, and those that its user requested.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "client/cpp/src/session.h"
#include "client/cpp/src/shared_region.h"

namespace stride::internal {

// Whether this error of a call with a region means that regions are unusable now, and not that the
// array has an error.
bool IsOfRegion(const Error& error);
// Such an error.
Error RegionGone();

// Thread-safe.
class SharedMemory {
 public:
  // Sizes from which a region pays (measured: 1 MiB takes a third of the time), and from which it
  // pays to create one to copy through.
  static constexpr int64_t kMinBytes = int64_t{256} << 10;
  static constexpr int64_t kMinFirstBytes = int64_t{1} << 20;
  // Smallest and largest size of the region that transfers copy through.
  static constexpr int64_t kLeastBounceBytes = int64_t{32} << 20;
  static constexpr int64_t kMaxBounceBytes = int64_t{128} << 20;

  // Both must outlive it. `by_itself`: use regions also for memory that is not shared.
  SharedMemory(Channels& channels, Session& session, bool by_itself)
      : channels_(channels), session_(session), by_itself_(by_itself) {}

  // Moves bytes by `move(region, in_place)`, which returns a Result, if a region helps for `size`
  // bytes at `data`. It is either the user's region that contains them (`in_place` is their
  // offset), or one of at least `bounce_bytes` to copy through, for this caller alone. nullopt: no
  // region is available now, or it proved unusable; the bytes then travel in messages.
  template <typename Move>
  auto Use(const std::byte* data, int64_t size, int64_t bounce_bytes, Move move)
      -> std::optional<decltype(move(std::declval<const SharedRegion&>(),
                                     std::optional<int64_t>()))> {
    if (size < kMinBytes) return std::nullopt;
    if (auto own = Find(data, static_cast<size_t>(size))) {
      auto moved = move(*own, data - own->data());
      if (moved || !IsOfRegion(moved.error())) return moved;
      if (moved.error().code != Code::kResourceExhausted) Forget(own);
      return std::nullopt;
    }
    auto lease = TryLease(size, bounce_bytes);
    if (!lease) return std::nullopt;
    auto moved = move(*lease->region, std::nullopt);
    if (moved) return moved;
    // The daemon may still use it.
    const bool useless =
        IsOfRegion(moved.error()) && moved.error().code != Code::kResourceExhausted;
    Drop(*lease, /*pause=*/useless);
    if (IsOfRegion(moved.error())) return std::nullopt;
    return moved;
  }

  // Creates a region for a user. Kept until Release.
  Result<std::shared_ptr<SharedRegion>> Allocate(int64_t bytes);
  void Release(const std::shared_ptr<SharedRegion>& region);
  // Ends the session; the users' regions keep their bytes.
  void EndSession();

 private:
  struct Lease {
    std::shared_ptr<SharedRegion> region;
    std::unique_lock<std::mutex> lock;
  };
  // The user's region that contains all these bytes.
  std::shared_ptr<SharedRegion> Find(const std::byte* data, size_t size);
  // Forgets a region whose pages are now ordinary memory.
  void Forget(const std::shared_ptr<SharedRegion>& region);
  // For an array of `size` bytes, which can use `bytes` of a region.
  std::optional<Lease> TryLease(int64_t size, int64_t bytes);
  // The next lease gets another region.
  void Drop(const Lease& lease, bool pause);
  void Pause();
  // Whether to try again at this moment.
  bool Trying();

  Channels& channels_;
  Session& session_;
  const bool by_itself_;
  std::mutex bounce_mutex_;               // held by the transfer in flight
  std::shared_ptr<SharedRegion> bounce_;  // guarded by bounce_mutex_
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_try_{};                 // guarded by mutex_
  std::map<const std::byte*, std::shared_ptr<SharedRegion>> users_;  // guarded by mutex_
};

}  // namespace stride::internal
