#include "server/api/local/local_connection.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "server/api/execute_stream.h"
#include "server/api/request_parser.h"
#include "server/api/run_operation.h"
#include "server/api/status.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/system_error.h"

namespace stride::api {

// Reads the frames of a call with several frames, from the first one on.
class FrameReader {
 public:
  FrameReader(FrameSocket* socket, const Frame& first, v1::LocalFrame kind, v1::LocalFrame end)
      : socket_(*socket), kind_(kind), end_(end), frame_(first) {}

  // False: the last frame was read, or `status` says why there is no next.
  bool Next();
  const Frame& frame() const { return frame_; }
  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }
  // Reads and discards the remaining frames. False: the last one does not arrive.
  bool Skip();

  // OUT_OF_RANGE: the connection has ended.
  const absl::Status& status() const { return status_; }

 private:
  FrameSocket& socket_;
  const v1::LocalFrame kind_, end_;
  Frame frame_;
  bool begun_ = false;
  bool ended_ = false;
  absl::Status status_;
};

namespace {

constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

SteadyTime DeadlineOf(const Frame& frame) {
  return frame.timeout > absl::ZeroDuration() ? Now() + frame.timeout
                                              : SteadyTime::InfiniteFuture();
}

template <typename Message>
absl::Status Parse(const Frame& frame, const RequestLimits& limits, ByteBudget::Charge* charge,
                   Message* message) {
  return ParseRequest(absl::MakeConstSpan(&frame.message, 1), ShapeOf<Message>(), limits, charge,
                      message);
}

// `where`: the frame's position in the connection.
absl::Status WrongKind(std::string_view where) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind",
                      absl::StrCat("a frame of this kind does not belong ", std::string(where)));
}

// Waits for the end of the operation. Returns an error only when the client no longer waits for it.
absl::Status AwaitEnd(const Call& call, engine::OperationHandle& handle) {
  for (;;) {
    const SteadyTime until = std::min(call.deadline(), Now() + kPollInterval);
    handle.Wait(until).IgnoreError();
    if (handle.done()) return absl::OkStatus();
    if (call.cancelled() || Now() >= call.deadline()) return call.EndOfWait();
  }
}

class ExecuteWire final : public CommandWire {
 public:
  ExecuteWire(FrameSocket* socket, FrameReader* frames, ByteBudget::Charge charge)
      : socket_(*socket), frames_(*frames), charge_(std::move(charge)) {}
  bool Read(v1::ExecuteRequest* request) override {
    // Releases the charge of the last call.
    charge_.Set(0).IgnoreError();
    if (!frames_.Next()) return false;
    absl::Status status = Parse(frames_.frame(), kLocalRequest, &charge_, request);
    return status.ok() || frames_.Fail(std::move(status));
  }
  bool Write(const v1::ExecuteResponse& response) override {
    return socket_.Write(v1::LOCAL_FRAME_EXECUTE, response);
  }

 private:
  FrameSocket& socket_;
  FrameReader& frames_;
  ByteBudget::Charge charge_;
};

class FramesPutWire final : public PutWire {
 public:
  explicit FramesPutWire(FrameReader* frames) : frames_(*frames) {}
  bool Read(std::vector<std::string_view>* message, absl::Status* status) override {
    const bool more = frames_.Next();
    *status = frames_.status();
    if (more) message->assign({frames_.frame().message});
    return more;
  }

 private:
  FrameReader& frames_;
};

class FramesFetchWire final : public FetchWire {
 public:
  explicit FramesFetchWire(FrameSocket* socket) : socket_(*socket) {}
  bool Write(const grpc::ByteBuffer& message) override {
    return socket_.Write(v1::LOCAL_FRAME_FETCH, message);
  }

 private:
  FrameSocket& socket_;
};

}  // namespace

bool FrameReader::Next() {
  if (ended_ || !status_.ok()) return false;
  if (std::exchange(begun_, true)) {
    auto frame = socket_.Read();
    if (!frame.ok()) return Fail(frame.status());
    frame_ = *frame;
  }
  ended_ = frame_.kind == end_;
  if (ended_ || frame_.kind == kind_) return !ended_;
  return Fail(WrongKind("into a call that has not ended"));
}

bool FrameReader::Skip() {
  while (!ended_) {
    v1::LocalFrame kind = frame_.kind;
    if (std::exchange(begun_, true) && !socket_.Drop(&kind)) return false;
    ended_ = kind == end_;
    if (!ended_ && kind != kind_) return false;
  }
  return true;
}

LocalConnection::LocalConnection(CallEnvironment* environment, const Services& services,
                                 const TenantId& tenant, Authenticator::Again authenticate,
                                 std::string peer, UniqueFd socket)
    : environment_(*environment),
      services_(services),
      socket_(std::move(socket), absl::Minutes(1), absl::Minutes(1),
              ByteBudget::Charge(environment->bytes, tenant)),
      caller_{std::move(authenticate), std::move(peer), [this] { return socket_.hung_up(); }} {}

void LocalConnection::Serve() {
  bool more = socket_.Write(v1::LOCAL_FRAME_OPEN, v1::ConnectRequest());
  while (more) {
    auto frame = socket_.Read(/*first=*/true);
    if (!frame.ok()) {
      if (absl::IsResourceExhausted(frame.status()) && RefuseCall(frame.status())) continue;
      if (!absl::IsOutOfRange(frame.status())) Refuse(frame.status());
      break;
    }
    busy_ = true;
    more = false;
    try {
      more = ServeOne(*frame);
    } catch (const std::system_error& error) {  // no thread available
      Refuse(TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA, error.what(),
                      kRetryDelay));
    }
    busy_ = false;
    more = more && !ending_;
    if (more) socket_.Shrink();
  }
  socket_.Shutdown();
}

// Either this function finds no call in progress, or Serve sees at the end of its call that it must
// end. A call that begins in between has already been sent, and can still be read.
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
    case v1::LOCAL_FRAME_PUT:
    case v1::LOCAL_FRAME_PUT_END:
      return ServePut(frame);
    case v1::LOCAL_FRAME_FETCH:
      return ServeFetch(frame);
    case v1::LOCAL_FRAME_CREATE_REGION:
      return ServeCreateRegion(frame);
    case v1::LOCAL_FRAME_MAP_ARRAY:
      return ServeMapArray(frame);
    default:
      return Refuse(WrongKind("at the beginning of a call"));
  }
}

bool LocalConnection::RefuseCall(const absl::Status& status) {
  const v1::LocalFrame kind = socket_.last_kind();
  const google::rpc::Status shown = ToRpcStatus(status);
  socket_.Shrink();
  auto skip = [&](v1::LocalFrame end) {
    FrameReader frames(&socket_, Frame{kind, absl::ZeroDuration(), ""}, kind, end);
    return Finish(frames, shown);
  };
  if (kind == v1::LOCAL_FRAME_EXECUTE) return skip(v1::LOCAL_FRAME_EXECUTE_END);
  if (kind == v1::LOCAL_FRAME_PUT) return skip(v1::LOCAL_FRAME_PUT_END);
  return socket_.Write(v1::LOCAL_FRAME_STATUS, shown);
}

bool LocalConnection::Refuse(const absl::Status& status) {
  socket_.Write(v1::LOCAL_FRAME_STATUS, ToRpcStatus(status));
  return false;
}

bool LocalConnection::ServeRun(const Frame& frame) {
  ByteBudget::Charge charge;
  google::protobuf::Arena arena;
  auto* request = google::protobuf::Arena::CreateMessage<v1::RunRequest>(&arena);
  auto* response = google::protobuf::Arena::CreateMessage<v1::RunResponse>(&arena);
  Call call(environment_, &caller_, DeadlineOf(frame), "ComputeService/Run");
  absl::Status status = call.status();
  if (status.ok()) {
    charge = ByteBudget::Charge(environment_.bytes, call.tenant());
    status = Parse(frame, kLocalRequest, &charge, request);
  }
  if (status.ok()) status = Run(call, *request, response);
  const google::rpc::Status shown = call.FinishLocal(status);
  return status.ok() ? socket_.Write(v1::LOCAL_FRAME_RUN, *response)
                     : socket_.Write(v1::LOCAL_FRAME_STATUS, shown);
}

absl::Status LocalConnection::Run(Call& call, const v1::RunRequest& request,
                                  v1::RunResponse* response) {
  RunOperation operation(services_.compute.operations, &request, response);
  absl::Status status = operation.Check();
  if (status.ok())
    status = operation.Submit(call, services_.compute.accounts->UploadDelay(call.tenant()));
  if (status.ok()) status = AwaitEnd(call, *operation.handle());
  bool complete = true;
  if (status.ok()) status = operation.TakeResults(&complete);
  if (status.ok() && !complete) status = operation.ReadTheRest(call.deadline());
  // The client no longer waits for the operation.
  if (!status.ok() && operation.handle() != nullptr) operation.handle()->Cancel();
  operation.Audit(call);
  return status;
}

bool LocalConnection::ServeExecute(const Frame& frame) {
  FrameReader frames(&socket_, frame, v1::LOCAL_FRAME_EXECUTE, v1::LOCAL_FRAME_EXECUTE_END);
  Call call(environment_, &caller_, SteadyTime::InfiniteFuture(), "ComputeService/Execute");
  ExecuteWire wire(&socket_, &frames, ByteBudget::Charge(environment_.bytes, call.tenant()));
  absl::Status status = call.status();
  if (status.ok()) status = ExecuteStream(&call, services_.compute, &wire).Run();
  if (absl::IsOutOfRange(frames.status())) {
    if (status.ok()) status = call.EndOfWait();
  } else if (!frames.status().ok()) {
    status = frames.status();
  }
  return Finish(frames, call.FinishLocal(status));
}

bool LocalConnection::ServePut(const Frame& frame) {
  FrameReader frames(&socket_, frame, v1::LOCAL_FRAME_PUT, v1::LOCAL_FRAME_PUT_END);
  FramesPutWire wire(&frames);
  Call call(environment_, &caller_, DeadlineOf(frame), "ArrayService/PutArray");
  auto array = call.status().ok() ? services_.transfer->Put(call, wire)
                                  : absl::StatusOr<v1::Array>(call.status());
  absl::Status status = array.status();
  if (absl::IsOutOfRange(frames.status())) status = call.EndOfWait();
  const google::rpc::Status shown = call.FinishLocal(status);
  if (!status.ok()) return Finish(frames, shown);
  v1::PutArrayResponse response;
  *response.mutable_array() = *std::move(array);
  return socket_.Write(v1::LOCAL_FRAME_PUT, response);
}

bool LocalConnection::ServeFetch(const Frame& frame) {
  v1::FetchArrayRequest request;
  FramesFetchWire wire(&socket_);
  Call call(environment_, &caller_, DeadlineOf(frame), "ArrayService/FetchArray");
  absl::Status status = call.status();
  ByteBudget::Charge charge(environment_.bytes, call.tenant());
  if (status.ok()) status = Parse(frame, kControlRequest, &charge, &request);
  if (status.ok()) status = services_.transfer->Fetch(call, request, wire);
  return socket_.Write(v1::LOCAL_FRAME_STATUS, call.FinishLocal(status));
}

template <typename Request, typename Response, typename Make>
bool LocalConnection::ServeMemory(const Frame& frame, const char* method, Make make) {
  Request request;
  Response response;
  Call call(environment_, &caller_, DeadlineOf(frame), method);
  absl::Status status = call.status();
  ByteBudget::Charge charge(environment_.bytes, call.tenant());
  if (status.ok()) status = Parse(frame, kControlRequest, &charge, &request);
  auto memory =
      status.ok() ? make(call, request, &response) : absl::StatusOr<engine::PinnedMemory>(status);
  if (!memory.ok()) return socket_.Write(v1::LOCAL_FRAME_STATUS, call.FinishLocal(memory.status()));
  // The client may delete the memory while this thread still sends: no reference of it stays here.
  const UniqueFd fd(fcntl(memory->fd, F_DUPFD_CLOEXEC, 0));
  memory->owner.reset();
  // An end that does not reach the client closes here, which releases the memory.
  auto pin = fd.valid() ? services_.pins->Add(memory->name)
                        : absl::StatusOr<UniqueFd>(SystemError(errno, "sharing memory"));
  if (!pin.ok()) services_.regions->Release(memory->name, nullptr);
  const google::rpc::Status shown = call.FinishLocal(pin.status());
  return pin.ok() ? socket_.Write(frame.kind, response, {fd.get(), pin->get()})
                  : socket_.Write(v1::LOCAL_FRAME_STATUS, shown);
}

bool LocalConnection::ServeCreateRegion(const Frame& frame) {
  return ServeMemory<v1::CreateRegionRequest, v1::CreateRegionResponse>(
      frame, "RegionService/CreateRegion", [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        auto region = services_.regions->Create(call.tenant(), request, response);
        if (record != nullptr) record->resource = response->region().name();
        return region;
      });
}

bool LocalConnection::ServeMapArray(const Frame& frame) {
  return ServeMemory<v1::MapArrayRequest, v1::MapArrayResponse>(
      frame, "RegionService/MapArray", [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        if (record != nullptr) record->resource = request.name();
        // In slices, since the client may go away while it waits.
        return WaitFor(call, call.deadline(), [&](SteadyTime deadline) {
          return services_.regions->Map(call.tenant(), request, deadline, response);
        });
      });
}

bool LocalConnection::Finish(FrameReader& frames, const google::rpc::Status& shown) {
  if (!socket_.Write(v1::LOCAL_FRAME_STATUS, shown)) return false;
  const bool whole = frames.status().ok() || absl::IsResourceExhausted(frames.status());
  return whole && frames.Skip();
}

}  // namespace stride::api
