#include "client/cpp/src/local_calls.h"

#include <algorithm>
#include <atomic>

#include "client/cpp/src/status.h"
#include "google/rpc/status.pb.h"

namespace stride::internal {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = LocalConnection::Outcome;

// Pause between requests to a daemon that offers no connection.
constexpr auto kPauseTime = std::chrono::seconds(10);
// The daemon has few connections: those of a burst are returned once a call finds them idle for
// this long.
constexpr auto kIdleTime = std::chrono::seconds(10);
constexpr std::chrono::nanoseconds kOpenTimeout = std::chrono::seconds(10);
// The daemon reports a missed deadline itself; after this additional time the client stops waiting
// for it.
constexpr auto kGrace = std::chrono::milliseconds(100);

// Whether the next attempt to open would fail in the same way.
bool TellsOfOthers(const Error& error) {
  return error.code != Code::kUnavailable && error.code != Code::kCancelled &&
         error.code != Code::kDeadlineExceeded;
}

Error TooLate() {
  return LocalError(Code::kDeadlineExceeded, "The daemon's answer did not come in time");
}

Error Cancelled() { return LocalError(Code::kCancelled, "The call was cancelled"); }

Error Broken() {
  return LocalError(Code::kUnavailable, "The connection to the daemon broke during the call");
}

Result<v1::RunResponse> Decode(const LocalMessage& message) {
  if (message.kind == v1::LOCAL_FRAME_RUN) {
    v1::RunResponse response;
    if (message.ParseInto(&response)) return response;
  } else if (google::rpc::Status status; message.kind == v1::LOCAL_FRAME_STATUS &&
                                         message.ParseInto(&status) && status.code() != 0) {
    return ToError(status);
  }
  return LocalError(Code::kInternal, "The daemon's answer cannot be read");
}

}  // namespace

std::unique_ptr<LocalConnection> LocalCalls::Open(const CallOptions& options) {
  if (!open_) return nullptr;
  {
    std::lock_guard lock(mutex_);
    if (Clock::now() < next_try_) return nullptr;
  }
  auto opened = open_(options);
  if (opened) return *std::move(opened);
  if (TellsOfOthers(opened.error())) {
    std::lock_guard lock(mutex_);
    next_try_ = Clock::now() + kPauseTime;
  }
  return nullptr;
}

std::unique_ptr<LocalConnection> LocalCalls::Take(const CallOptions& options,
                                                  LocalDeadline deadline) {
  if (!open_) return nullptr;
  std::vector<Idle> stale;  // closed without the lock
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const auto fresh = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const Idle& idle) { return now - idle.since < kIdleTime; });
    stale.assign(std::move_iterator(idle_.begin()), std::move_iterator(fresh));
    idle_.erase(idle_.begin(), fresh);
    num_connections_ -= static_cast<int>(stale.size());
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back().connection);
      idle_.pop_back();
      if (connection->Quiet()) return connection;
      --num_connections_;
    }
    if (num_connections_ == kMaxConnections) return nullptr;
    ++num_connections_;
  }
  const auto left = deadline ? std::min(kOpenTimeout, *deadline - Clock::now()) : kOpenTimeout;
  auto connection =
      left.count() > 0 ? Open({.timeout = left, .cancellation = options.cancellation}) : nullptr;
  if (!connection) GiveBack(nullptr);
  return connection;
}

void LocalCalls::GiveBack(std::unique_ptr<LocalConnection> connection) {
  std::lock_guard lock(mutex_);
  if (connection) {
    idle_.push_back({std::move(connection), Clock::now()});
  } else {
    --num_connections_;
  }
}

std::optional<Result<v1::RunResponse>> LocalCalls::Run(const v1::RunRequest& request,
                                                       const CallOptions& options,
                                                       LocalDeadline deadline) {
  if (!open_ || request.ByteSizeLong() > LocalConnection::kMaxMessageBytes) return std::nullopt;
  auto connection = Take(options, deadline);
  if (!connection) return std::nullopt;
  std::atomic<bool> cancelled = false;
  uint64_t action = 0;
  if (options.cancellation) {
    action = options.cancellation->Add([&] {
      cancelled = true;
      connection->Cancel();
    });
  }
  const auto left = deadline ? *deadline - Clock::now() : std::chrono::nanoseconds();
  const bool late = deadline && left.count() <= 0;
  const auto end = deadline ? LocalDeadline(*deadline + kGrace) : LocalDeadline();
  const auto sent =
      late ? Outcome::kTimedOut : connection->Write(v1::LOCAL_FRAME_RUN, request, left, end);
  LocalMessage message;
  const auto answered =
      sent == Outcome::kDone ? connection->Read(&message, /*watch=*/true, end) : sent;
  if (options.cancellation) options.cancellation->Remove(action);

  std::optional<Result<v1::RunResponse>> result;
  if (answered == Outcome::kDone) {
    result = Decode(message);
  } else if (cancelled) {
    result = Cancelled();
  } else if (answered == Outcome::kTimedOut) {
    result = TooLate();
  } else if (sent == Outcome::kDone) {
    result = Broken();
  }
  const bool reusable =
      answered == Outcome::kDone && !cancelled &&
      (message.kind == v1::LOCAL_FRAME_RUN || message.kind == v1::LOCAL_FRAME_STATUS);
  if (!reusable) connection.reset();
  GiveBack(std::move(connection));
  return result;
}

void LocalCalls::Close() {
  std::lock_guard lock(mutex_);
  num_connections_ -= static_cast<int>(idle_.size());
  idle_.clear();
}

}  // namespace stride::internal
