#include "server/api/reset_budget.h"

#include <algorithm>
#include <iterator>

#include "server/base/steady_time.h"

namespace stride::api {

bool ResetBudget::Take(const std::string& peer, uint64_t resets, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  Forget(now);
  Bucket& bucket = buckets_.try_emplace(peer, Bucket{burst_, now}).first->second;
  bucket.left = LeftAt(bucket, now);
  bucket.time = now;
  auto wanted = static_cast<double>(resets);
  if (wanted > bucket.left) return false;
  bucket.left -= wanted;
  return true;
}

size_t ResetBudget::num_peers() const {
  absl::MutexLock lock(&mutex_);
  return buckets_.size();
}

double ResetBudget::LeftAt(const Bucket& bucket, SteadyTime now) const {
  double seconds = std::max(0.0, absl::ToDoubleSeconds(now - bucket.time));
  return std::min(burst_, bucket.left + seconds * kPerSecond);
}

// Forgets peers whose budget is full again; called now and then.
void ResetBudget::Forget(SteadyTime now) {
  if (now < next_forget_) return;
  next_forget_ = now + absl::Seconds(burst_ / kPerSecond);
  for (auto it = buckets_.begin(); it != buckets_.end();)
    it = LeftAt(it->second, now) >= burst_ ? buckets_.erase(it) : std::next(it);
}

}  // namespace stride::api
