#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride::api {

// Counts the message bytes of all connections that gRPC holds and the daemon has not taken. A peer,
// and a connection, may have at most as much as remains for all others: one peer gets at most half,
// and another peer always has room for a small message. Within a peer, connections end that have
// more than the average of its connections. Thread-safe.
class HeldBytes {
 public:
  static constexpr int64_t kBytes = int64_t{192} << 20;
  // A connection with fewer bytes is never ended.
  static constexpr int64_t kAlways = 128 << 10;

  explicit HeldBytes(int64_t max_bytes = kBytes) : max_bytes_(max_bytes) {}

  // Changes a connection of `peer` from `before` to `now` bytes. False: that is too much, and the
  // connection must end.
  bool Change(const std::string& peer, int64_t before, int64_t now);
  int64_t total() const;

 private:
  struct Peer {
    int64_t held = 0;
    int64_t num_heavy = 0;  // connections with more than kAlways
  };

  bool Fits(const Peer& peer, int64_t now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_bytes_;
  mutable absl::Mutex mutex_;
  int64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);  // those that have something
};

}  // namespace stride::api
