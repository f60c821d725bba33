#include "server/identity/failure_limiter.h"

#include <algorithm>

#include "server/base/steady_time.h"

namespace stride::identity {

bool FailureLimiter::Take(const std::string& address, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  if (buckets_.size() >= kMaxAddresses && buckets_.count(address) == 0) Forget(now);
  Bucket& bucket = buckets_.try_emplace(address, Bucket{kFree, now}).first->second;
  double earned = absl::ToDoubleSeconds(now - bucket.time) * kPerSecond;
  bucket.left = std::min(kFree, bucket.left + std::max(0.0, earned));
  bucket.time = now;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

void FailureLimiter::Forget(SteadyTime now) {
  absl::Duration full = absl::Seconds(kFree / kPerSecond);
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    it = now - it->second.time > full ? buckets_.erase(it) : std::next(it);
  }
  // So many addresses at once belong to one attacker: clear the table rather than let it grow.
  if (buckets_.size() >= kMaxAddresses) buckets_.clear();
}

}  // namespace stride::identity
