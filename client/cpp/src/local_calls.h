// A client's local connections: idle ones for calls, and new ones.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/cpp/src/local_connection.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::internal {

// Thread-safe. Where there is none to be had, calls go by gRPC, and the daemon is not asked again
// for a while.
class LocalCalls {
 public:
  using Opener =
      std::function<Result<std::unique_ptr<LocalConnection>>(const CallOptions& options)>;
  // Open at once, for calls.
  static constexpr int kMaxConnections = 16;

  // Without an opener there is never one.
  explicit LocalCalls(Opener open) : open_(std::move(open)) {}

  // A new one for the caller alone, or null. `options` are of the opening.
  std::unique_ptr<LocalConnection> Open(const CallOptions& options);
  // Nothing: the daemon has not got the call, which may go by gRPC. Of `options` only the
  // cancellation counts; the deadline is the call's.
  std::optional<Result<v1::RunResponse>> Run(const v1::RunRequest& request,
                                             const CallOptions& options, LocalDeadline deadline);
  // One for a call, or null; then GiveBack must follow. As of Run's, of `options` only the
  // cancellation counts.
  std::unique_ptr<LocalConnection> Take(const CallOptions& options, LocalDeadline deadline);
  // Null: it is of no further use.
  void GiveBack(std::unique_ptr<LocalConnection> connection);
  // Closes the idle ones. No call may be under way.
  void Close();

 private:
  struct Idle {
    std::unique_ptr<LocalConnection> connection;
    std::chrono::steady_clock::time_point since;
  };

  const Opener open_;
  std::mutex mutex_;
  std::vector<Idle> idle_;                            // guarded by mutex_; the newest last
  int num_connections_ = 0;                           // guarded by mutex_; idle or running
  std::chrono::steady_clock::time_point next_try_{};  // guarded by mutex_
};

}  // namespace stride::internal
