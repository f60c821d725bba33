#include "client/cpp/src/local_raw_call.h"

#include <grpcpp/support/slice.h>

#include <atomic>
#include <optional>
#include <utility>

#include "client/cpp/src/status.h"
#include "google/rpc/status.pb.h"

namespace stride::internal {
namespace {

using Outcome = LocalConnection::Outcome;

class LocalRawCall final : public RawCall {
 public:
  LocalRawCall(LocalCalls& calls, std::unique_ptr<LocalConnection> connection, Method method,
               const CallOptions& options, std::chrono::nanoseconds timeout, LocalDeadline deadline)
      : calls_(calls),
        connection_(std::move(connection)),
        puts_(method == Method::kPutArray),
        timeout_(timeout),
        deadline_(deadline),
        cancellation_(options.cancellation) {
    if (cancellation_) action_ = cancellation_->Add([this] { Cancel(); });
  }

  ~LocalRawCall() override {
    if (cancellation_) cancellation_->Remove(action_);
    // A connection in the middle of a call is not reusable.
    if (!ended_ || cancelled_) connection_.reset();
    calls_.GiveBack(std::move(connection_));
  }

  bool Write(const grpc::ByteBuffer& message) override {
    return Note(connection_->Write(puts_ ? v1::LOCAL_FRAME_PUT : v1::LOCAL_FRAME_FETCH, message,
                                   std::exchange(timeout_, {}), deadline_));
  }

  bool WritesDone() override {
    // A download has one request, which ends the sending side.
    return !puts_ ||
           Note(connection_->Write(v1::LOCAL_FRAME_PUT_END, grpc::ByteBuffer(), {}, deadline_));
  }

  bool Read(grpc::ByteBuffer* message) override {
    LocalMessage frame;
    if (ended_ || !Note(connection_->Read(&frame, /*watch=*/false, deadline_))) return false;
    const bool answer = frame.kind == (puts_ ? v1::LOCAL_FRAME_PUT : v1::LOCAL_FRAME_FETCH);
    if (answer) {
      const grpc::Slice slice(frame.bytes.data(), frame.bytes.size());
      *message = grpc::ByteBuffer(&slice, 1);
      ended_ = puts_;
      return true;
    }
    if (frame.kind == v1::LOCAL_FRAME_STATUS && frame.ParseInto(&status_)) {
      ended_ = true;
    } else {
      error_ = LocalError(Code::kInternal, "The daemon's answer cannot be read");
    }
    return false;
  }

  Result<void> Finish() override {
    // An error before the last message was sent arrives after that message.
    grpc::ByteBuffer message;
    while (!ended_ && !error_ && Read(&message)) {
    }
    if (cancelled_) return LocalError(Code::kCancelled, "The call was cancelled");
    if (ended_ && status_.code() != 0) return ToError(status_);
    if (ended_) return {};
    if (error_) return *error_;
    return LocalError(Code::kUnavailable, "The connection to the daemon broke during the call");
  }

  void Cancel() override {
    cancelled_ = true;
    connection_->Cancel();
  }

 private:
  bool Note(Outcome outcome) {
    if (outcome == Outcome::kTimedOut)
      error_ = LocalError(Code::kDeadlineExceeded, "The transfer did not end in time");
    return outcome == Outcome::kDone;
  }

  LocalCalls& calls_;
  std::unique_ptr<LocalConnection> connection_;
  const bool puts_;
  std::chrono::nanoseconds timeout_;  // for the first frame
  const LocalDeadline deadline_;
  std::optional<Cancellation> cancellation_;
  uint64_t action_ = 0;
  std::atomic<bool> cancelled_ = false;
  bool ended_ = false;  // the daemon has sent the status
  google::rpc::Status status_;
  std::optional<Error> error_;
};

}  // namespace

std::unique_ptr<RawCall> BeginRawCall(LocalCalls* calls,
                                      const std::shared_ptr<grpc::Channel>& channel,
                                      RawCall::Method method, const CallOptions& options,
                                      std::chrono::nanoseconds default_timeout) {
  const auto timeout = TimeoutOf(options, default_timeout);
  const LocalDeadline deadline = LocalDeadlineAfter(timeout);
  auto connection = calls != nullptr ? calls->Take(options, deadline) : nullptr;
  if (!connection) return RawCallByGrpc(channel, method, options, default_timeout);
  return std::make_unique<LocalRawCall>(*calls, std::move(connection), method, options, timeout,
                                        deadline);
}

}  // namespace stride::internal
