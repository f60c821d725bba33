// The session that owns this client's handles: opened by its first use, renewed while the client
// lives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "client/cpp/src/channels.h"
#include "stride/result.h"

namespace stride::internal {

// Thread-safe.
class Session {
 public:
  // `channels` must outlive it.
  Session(Channels& channels, std::chrono::seconds ttl) : channels_(channels), ttl_(ttl) {}
  ~Session();

  // `sessions/{id}`; opens a session if there is none, which blocks.
  Result<std::string> Name();
  // The daemon no longer knows `name`: the next Name() opens another session. Its arrays are lost.
  void Forget(const std::string& name);
  // Deletes the session at the daemon and stops its renewal. Must be the last call.
  void End();

 private:
  void RenewUntilEnded();

  Channels& channels_;
  const std::chrono::seconds ttl_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  std::string name_;    // guarded by mutex_; empty: none open
  bool ended_ = false;  // guarded by mutex_
  std::thread renewer_;
};

}  // namespace stride::internal
