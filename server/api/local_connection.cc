#include "server/api/local_connection.h"

#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/arena.h"
#include "server/api/command_wire.h"
#include "server/api/execute_stream.h"
#include "server/api/run_operation.h"
#include "server/api/status.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

absl::Time DeadlineOf(const Frame& frame) {
  return frame.timeout > absl::ZeroDuration() ? absl::Now() + frame.timeout
                                              : absl::InfiniteFuture();
}

absl::Status Unreadable(std::string_view what) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "message",
                      absl::StrCat("cannot be read as ", std::string(what)));
}

bool Parse(const Frame& frame, google::protobuf::MessageLite* message) {
  return message->ParseFromArray(frame.message.data(), static_cast<int>(frame.message.size()));
}

// The frames of one Execute call.
class FrameWire final : public CommandWire {
 public:
  // `first` has been read already.
  FrameWire(FrameSocket* socket, const Frame& first) : socket_(*socket), next_(first) {}

  bool Read(v1::ExecuteRequest* request) override {
    if (next_.has_value()) {
      frame_ = *std::exchange(next_, std::nullopt);
    } else {
      auto frame = socket_.Read();
      if (!frame.ok()) return Fail(frame.status());
      frame_ = *frame;
    }
    if (frame_.kind == v1::LOCAL_FRAME_EXECUTE_END) {
      ended_ = true;
      return false;
    }
    if (frame_.kind != v1::LOCAL_FRAME_EXECUTE)
      return Fail(InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind",
                               "within an Execute call there are EXECUTE frames alone"));
    return Parse(frame_, request) || Fail(Unreadable("an ExecuteRequest"));
  }
  bool Write(const v1::ExecuteResponse& response) override {
    return socket_.Write(v1::LOCAL_FRAME_EXECUTE, response);
  }

  // The client has sent its last frame.
  bool ended() const { return ended_; }
  // Why there is nothing more to be read from the connection.
  const absl::Status& status() const { return status_; }

 private:
  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  FrameSocket& socket_;
  std::optional<Frame> next_;
  Frame frame_;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace

LocalConnection::LocalConnection(CallEnvironment* environment, scheduler::Engine* engine,
                                 identity::Principal caller, std::string peer, UniqueFd socket)
    : environment_(*environment),
      engine_(engine),
      socket_(std::move(socket)),
      caller_{std::move(caller), std::move(peer), [this] { return socket_.hung_up(); }} {}

void LocalConnection::Serve() {
  for (;;) {
    auto frame = socket_.Read();
    if (!frame.ok()) {
      if (!absl::IsOutOfRange(frame.status())) Refuse(frame.status());
      break;
    }
    busy_ = true;
    bool more = false;
    try {
      more = ServeOne(*frame);
    } catch (const std::system_error& error) {  // no thread to be had
      Refuse(TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA, error.what(),
                      kRetryDelay));
    }
    busy_ = false;
    if (!more || ending_) break;
  }
  socket_.Shutdown();
}

// Whichever of the two sees the other's flag: `busy_` is set before the call begins, and what has
// been sent can be read in spite of the end.
void LocalConnection::EndSoon() {
  ending_ = true;
  if (!busy_) socket_.StopReading();
}

bool LocalConnection::ServeOne(const Frame& frame) {
  switch (frame.kind) {
    case v1::LOCAL_FRAME_RUN:
      return ServeRun(frame);
    case v1::LOCAL_FRAME_EXECUTE:
    case v1::LOCAL_FRAME_EXECUTE_END:
      return ServeExecute(frame);
    default:
      return Refuse(InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind",
                                 absl::StrCat("no call begins with a frame of kind ", frame.kind)));
  }
}

bool LocalConnection::Refuse(const absl::Status& status) {
  socket_.Write(v1::LOCAL_FRAME_STATUS, ToRpcStatus(status));
  return false;
}

bool LocalConnection::ServeRun(const Frame& frame) {
  google::protobuf::Arena arena;
  auto* request = google::protobuf::Arena::CreateMessage<v1::RunRequest>(&arena);
  auto* response = google::protobuf::Arena::CreateMessage<v1::RunResponse>(&arena);
  Call call(environment_, &caller_, DeadlineOf(frame), "ComputeService/Run");
  const absl::Status status =
      Parse(frame, request) ? Run(call, *request, response) : Unreadable("a RunRequest");
  const google::rpc::Status shown = call.FinishLocal(status);
  return status.ok() ? socket_.Write(v1::LOCAL_FRAME_RUN, *response)
                     : socket_.Write(v1::LOCAL_FRAME_STATUS, shown);
}

absl::Status LocalConnection::Run(Call& call, const v1::RunRequest& request,
                                  v1::RunResponse* response) {
  RunOperation operation(engine_, &request, response);
  absl::Status status = operation.Check();
  if (status.ok()) status = operation.Submit(call, engine_->accounts().UploadDelay(call.tenant()));
  if (status.ok()) {
    // Its own error comes with its results.
    const absl::Status waited = WaitFor(call, call.deadline(), [&](absl::Time deadline) {
      absl::Status end = operation.ticket()->Wait(deadline);
      return operation.ticket()->done() ? absl::OkStatus() : end;
    });
    status = waited;
  }
  bool complete = true;
  if (status.ok()) status = operation.TakeResults(&complete);
  if (status.ok() && !complete) status = operation.ReadTheRest(call.deadline());
  // Nobody waits for it any more.
  if (!status.ok() && operation.ticket() != nullptr) operation.ticket()->Cancel();
  operation.Audit(call);
  return status;
}

bool LocalConnection::ServeExecute(const Frame& frame) {
  FrameWire wire(&socket_, frame);
  Call call(environment_, &caller_, absl::InfiniteFuture(), "ComputeService/Execute");
  absl::Status status = ExecuteStream(&call, engine_, &wire).Run();
  const bool lost = absl::IsOutOfRange(wire.status());
  if (!wire.status().ok() && !lost) status = wire.status();
  if (lost && status.ok()) status = call.EndOfWait();
  const google::rpc::Status shown = call.FinishLocal(status);
  if (!socket_.Write(v1::LOCAL_FRAME_STATUS, shown) || !wire.status().ok()) return false;
  return wire.ended() || SkipExecute();
}

bool LocalConnection::SkipExecute() {
  for (;;) {
    auto frame = socket_.Read();
    if (!frame.ok()) return false;
    if (frame->kind == v1::LOCAL_FRAME_EXECUTE_END) return true;
    if (frame->kind != v1::LOCAL_FRAME_EXECUTE) return false;
  }
}

}  // namespace stride::api
