#include "server/api/held_bytes.h"

namespace stride::api {

bool HeldBytes::Change(const std::string& peer, int64_t before, int64_t now) {
  absl::MutexLock lock(&mutex_);
  const auto it = peers_.try_emplace(peer).first;
  Peer& account = it->second;
  account.held += now - before;
  account.num_heavy += (now > kAlways ? 1 : 0) - (before > kAlways ? 1 : 0);
  total_ += now - before;
  const Peer after = account;
  if (after.held == 0) peers_.erase(it);
  return now <= before || Fits(after, now);
}

bool HeldBytes::Fits(const Peer& peer, int64_t now) const {
  if (now <= kAlways) return true;
  const int64_t left = max_bytes_ - total_;
  if (now > left) return false;
  return peer.held <= left || now * peer.num_heavy <= peer.held;
}

int64_t HeldBytes::total() const {
  absl::MutexLock lock(&mutex_);
  return total_;
}

}  // namespace stride::api
