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

// Thread-safe. If no connection is available, calls use gRPC, and the daemon is not asked again for
// a while.
class LocalCalls {
 public:
  using Opener =
      std::function<Result<std::unique_ptr<LocalConnection>>(const CallOptions& options)>;
  // Most open connections for calls.
  static constexpr int kMaxConnections = 16;

  // Without an opener there are no connections.
  explicit LocalCalls(Opener open) : open_(std::move(open)) {}

  // A new connection for the caller alone, or null. `options` apply to the attempt.
  std::unique_ptr<LocalConnection> Open(const CallOptions& options);
  // nullopt: the daemon has not received the call, which may use gRPC. Uses only the cancellation
  // of `options`; `deadline` applies to the call.
  std::optional<Result<v1::RunResponse>> Run(const v1::RunRequest& request,
                                             const CallOptions& options, LocalDeadline deadline);
  // A connection for one call, or null; then GiveBack must follow. Uses `options` like Run.
  std::unique_ptr<LocalConnection> Take(const CallOptions& options, LocalDeadline deadline);
  // Null: the connection is no longer usable.
  void GiveBack(std::unique_ptr<LocalConnection> connection);
  // Closes idle connections. No call may be in flight.
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
