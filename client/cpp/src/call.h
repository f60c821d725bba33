// One gRPC call's context, with the caller's deadline and cancellation.
#pragma once

#include <grpcpp/client_context.h>

#include <optional>

#include "client/cpp/src/grpc_time.h"
#include "stride/call_options.h"

namespace stride::internal {

// The call's timeout; zero: no limit.
inline std::chrono::nanoseconds TimeoutOf(const CallOptions& options,
                                          std::chrono::nanoseconds default_timeout) {
  return options.timeout.count() != 0 ? options.timeout : default_timeout;
}

// The call's deadline; nullopt: no limit.
inline std::optional<gpr_timespec> DeadlineOf(const CallOptions& options,
                                              std::chrono::nanoseconds default_timeout) {
  const auto timeout = TimeoutOf(options, default_timeout);
  if (timeout.count() == 0) return std::nullopt;
  return GrpcTimeAfter(timeout);
}

class Call {
 public:
  Call(const CallOptions& options, std::chrono::nanoseconds default_timeout)
      : cancellation_(options.cancellation) {
    if (auto deadline = DeadlineOf(options, default_timeout)) context_.set_deadline(*deadline);
    if (cancellation_) action_ = cancellation_->Add([this] { context_.TryCancel(); });
  }
  ~Call() {
    if (cancellation_) cancellation_->Remove(action_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext* context() { return &context_; }

 private:
  grpc::ClientContext context_;
  std::optional<Cancellation> cancellation_;
  uint64_t action_ = 0;
};

}  // namespace stride::internal
