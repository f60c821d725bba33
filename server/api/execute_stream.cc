#include "server/api/execute_stream.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/ack_writer.h"
#include "server/api/inline_outputs.h"
#include "server/api/operation_limits.h"
#include "server/api/serve.h"
#include "server/api/status.h"
#include "server/base/error.h"
#include "server/session/resource_name.h"

namespace stride::api {
namespace {

constexpr absl::Duration kShortestRenewal = absl::Milliseconds(100);
// Commands that are given to the engine in one section of its lock: others wait for it some 0.1 ms
// at most.
constexpr size_t kTogether = 16;

// Answers that are there wait so long for one that is not: a message costs the client more.
constexpr absl::Duration kSoon = absl::Microseconds(500);

// Whether the engine takes it without waiting for anything.
bool IsImmediate(const v1::Command& command) {
  return command.has_release() ||
         (command.has_operation() && !command.operation().has_program_call());
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// When the operation must have ended.
absl::StatusOr<absl::Time> DeadlineOf(const v1::Command& command) {
  if (!command.has_timeout()) return absl::InfiniteFuture();
  absl::Duration timeout =
      absl::Seconds(command.timeout().seconds()) + absl::Nanoseconds(command.timeout().nanos());
  if (timeout > absl::ZeroDuration()) return absl::Now() + timeout;
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "timeout", "must be positive");
}

absl::Status CheckOperation(const v1::Operation& operation) {
  if (absl::Status status = CheckCounts(operation); !status.ok()) {
    return PrefixField(status, "operation.");
  }
  for (const OutputPlace& place : OutputsOf(operation)) {
    if (!place.output->inline_result()) continue;
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, absl::StrCat("operation.", place.field(), ".inline_result"),
        "inline results are for Run; here keep the result under a handle and fetch it");
  }
  return absl::OkStatus();
}

void SetStatus(const absl::Status& status, v1::CommandResult* result) {
  if (!status.ok()) *result->mutable_status() = ToRpcStatus(status);
}

void Describe(const scheduler::Ticket& ticket, v1::CommandResult* result) {
  ticket.Describe([result] { return result->add_results()->mutable_array(); });
}

// Where the answers to one message lie, which are written and forgotten about together.
std::shared_ptr<google::protobuf::Arena> MakeRoomForAnswers(int num_commands) {
  constexpr size_t kUsualBytes = 512, kMaxBlockBytes = 64 << 10;
  google::protobuf::ArenaOptions options;
  options.start_block_size =
      std::min(kMaxBlockBytes, kUsualBytes * static_cast<size_t>(num_commands + 1));
  options.max_block_size = kMaxBlockBytes;
  return std::make_shared<google::protobuf::Arena>(options);
}

}  // namespace

absl::Status ExecuteStream::Run() {
  std::thread writer;
  const v1::ExecuteRequest* first = Read();
  if (first == nullptr) return call_.cancelled() ? call_.EndOfWait() : absl::OkStatus();
  if (absl::Status status = TakeSession(*first); !status.ok()) return status;
  writer = std::thread([this] { WriteAll(); });
  absl::Status status = CheckCommands(*first);
  if (status.ok()) TakeAll(*first);
  if (status.ok()) status = ReadAll();
  queue_.Close();
  writer.join();
  return call_.cancelled() ? call_.EndOfWait() : status;
}

v1::ExecuteRequest* ExecuteStream::Read() {
  request_arena_.Reset();
  auto* request = google::protobuf::Arena::CreateMessage<v1::ExecuteRequest>(&request_arena_);
  return wire_.Read(request) ? request : nullptr;
}

absl::Status ExecuteStream::ReadAll() {
  while (const v1::ExecuteRequest* request = Read()) {
    if (!request->session().empty() && request->session() != session_) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "session",
                          "cannot change within a stream");
    }
    if (absl::Status status = CheckCommands(*request); !status.ok()) return status;
    if (!TakeAll(*request)) return call_.EndOfWait();
  }
  return absl::OkStatus();
}

bool ExecuteStream::TakeAll(const v1::ExecuteRequest& request) {
  const auto room = MakeRoomForAnswers(request.commands_size());
  absl::InlinedVector<PendingAck, kTogether> acks;
  std::unique_ptr<scheduler::Engine::Together> together;
  for (int i = 0; i < request.commands_size(); ++i) {
    const v1::Command& command = request.commands(i);
    const bool more = i + 1 < request.commands_size();
    const absl::Duration delay = engine_.accounts().UploadDelay(call_.tenant());
    if (delay > absl::ZeroDuration() || !IsImmediate(command)) {
      together.reset();
    } else if (together == nullptr && more) {
      together = engine_.BeginTogether();
    }
    acks.push_back(Take(command, delay, room));
    if (more && acks.size() < kTogether && together != nullptr) continue;
    together.reset();
    for (size_t j = 0; j < acks.size(); ++j) {
      if (!queue_.Push(std::move(acks[j]), more || j + 1 < acks.size())) return false;
    }
    acks.clear();
  }
  return true;
}

absl::Status ExecuteStream::TakeSession(const v1::ExecuteRequest& request) {
  session_ = request.session();
  if (session_.empty()) return absl::OkStatus();
  auto id = session::ParseSessionName(session_, "session");
  if (!id.ok()) return id.status();
  auto session = engine_.RenewSession(call_.tenant(), session_);
  if (!session.ok()) return session.status();
  absl::Duration ttl = FromProto(session->expire_time()) - absl::Now();
  renew_interval_ = std::max(ttl / 3, kShortestRenewal);
  return absl::OkStatus();
}

absl::Status ExecuteStream::CheckCommands(const v1::ExecuteRequest& request) const {
  if (request.commands_size() <= kMaxCommands) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, "commands",
      absl::StrCat("at most ", kMaxCommands, " in one message, not ", request.commands_size()),
      {{"limit", std::to_string(kMaxCommands)},
       {"value", std::to_string(request.commands_size())}});
}

PendingAck ExecuteStream::Take(const v1::Command& command, absl::Duration upload_delay,
                               const std::shared_ptr<google::protobuf::Arena>& room) {
  PendingAck ack;
  // What is fetched may be large, and goes as soon as it is written.
  ack.result =
      command.has_fetch()
          ? std::make_shared<v1::CommandResult>()
          : std::shared_ptr<v1::CommandResult>(
                room, google::protobuf::Arena::CreateMessage<v1::CommandResult>(room.get()));
  ack.result->set_id(command.id());
  switch (command.kind_case()) {
    case v1::Command::kOperation:
      TakeOperation(command, upload_delay, &ack);
      break;
    case v1::Command::kRelease:
      TakeRelease(command.release(), &ack);
      break;
    case v1::Command::kFetch:
      TakeFetch(command.fetch(), &ack);
      break;
    case v1::Command::kSynchronize:
      ack.kind = PendingAck::Kind::kSynchronize;
      ack.before = operations_->Mark();
      break;
    case v1::Command::KIND_NOT_SET:
      SetStatus(InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind",
                             "missing: one of operation, release, fetch, synchronize"),
                ack.result.get());
  }
  return ack;
}

void ExecuteStream::TakeOperation(const v1::Command& command, absl::Duration upload_delay,
                                  PendingAck* ack) {
  absl::StatusOr<absl::Time> deadline = DeadlineOf(command);
  absl::Status status = deadline.status();
  if (status.ok()) status = CheckOperation(command.operation());
  if (status.ok()) status = call_.AwaitUploadRate(upload_delay);
  if (status.ok()) {
    auto ticket = engine_.Submit(call_.tenant(), session_, command.operation(), *deadline);
    status = PrefixField(ticket.status(), "operation.");
    if (ticket.ok()) ack->ticket = *std::move(ticket);
  }
  if (!status.ok()) {
    operations_->Refused(status);
    SetStatus(status, ack->result.get());
    return;
  }
  operations_->Accepted(*ack->ticket);
  audit_.Accepted(ack->ticket);
  if (command.wait()) {
    ack->kind = PendingAck::Kind::kWait;
  } else {
    Describe(*ack->ticket, ack->result.get());
    ack->ticket.reset();
  }
}

void ExecuteStream::TakeRelease(const v1::Release& release, PendingAck* ack) {
  absl::Status status = engine_.Release(call_.tenant(), session_, release);
  SetStatus(status, ack->result.get());
}

void ExecuteStream::TakeFetch(const v1::Fetch& fetch, PendingAck* ack) {
  // Bound now: what comes later in the stream, or elsewhere, changes nothing of what it reads.
  auto taken = engine_.BeginFetch(call_.tenant(), session_, fetch.handle());
  if (!taken.ok()) {
    SetStatus(taken.status(), ack->result.get());
    return;
  }
  ack->kind = PendingAck::Kind::kFetch;
  ack->fetch = *std::move(taken);
}

void ExecuteStream::WriteAll() {
  AckWriter writer(&wire_);
  absl::Time renewal = absl::Now() + renew_interval_;
  for (;;) {
    if (absl::Now() >= renewal) {
      RenewSession();
      renewal = absl::Now() + renew_interval_;
    }
    if (queue_.idle() && !writer.Flush()) break;
    PendingAck ack;
    AckQueue::Next next = queue_.Pop(renewal, &ack);
    if (next == AckQueue::Next::kTimeout) continue;
    if (next == AckQueue::Next::kEnd) break;
    absl::Status status = Complete(ack, &writer);
    // Only a wait need ask whether anybody still listens; for all else a failed write tells.
    const bool gone = !status.ok() && ack.kind != PendingAck::Kind::kReady && call_.cancelled();
    SetStatus(status, ack.result.get());
    queue_.Done();
    if (gone || !writer.Add(std::move(ack.result))) break;
  }
  writer.Flush();
  queue_.Break();
}

absl::Time ExecuteStream::Soon() const { return std::min(call_.deadline(), absl::Now() + kSoon); }

template <typename Wait>
auto ExecuteStream::Await(AckWriter* writer, Wait wait) -> decltype(wait(absl::Time())) {
  auto soon = wait(Soon());
  if (!absl::IsDeadlineExceeded(StatusOf(soon))) return soon;
  writer->Flush();  // a broken stream shows in the wait
  return WaitFor(call_, call_.deadline(), wait);
}

absl::Status ExecuteStream::Complete(PendingAck& ack, AckWriter* writer) {
  switch (ack.kind) {
    case PendingAck::Kind::kReady:
      return absl::OkStatus();
    case PendingAck::Kind::kWait: {
      absl::Status status =
          Await(writer, [&](absl::Time deadline) { return ack.ticket->Wait(deadline); });
      Describe(*ack.ticket, ack.result.get());
      *ack.result->mutable_timeline() = ack.ticket->timeline();
      return PrefixField(status, "operation.");
    }
    case PendingAck::Kind::kFetch: {
      auto array = Await(writer, [&](absl::Time deadline) { return ack.fetch->Read(deadline); });
      if (!array.ok()) return array.status();
      int64_t size = static_cast<int64_t>(array->ByteSizeLong());
      if (size > AckWriter::kMaxResultBytes) return InlineTooLarge("fetch.handle", size);
      *ack.result->add_results()->mutable_inline_array() = *std::move(array);
      return absl::OkStatus();
    }
    case PendingAck::Kind::kSynchronize:
      if (!operations_->HaveEnded(ack.before, Soon())) writer->Flush();
      return WaitFor(call_, call_.deadline(), [&](absl::Time deadline) {
        return operations_->WaitFor(ack.before, deadline);
      });
  }
  return absl::OkStatus();
}

// A session that was deleted meanwhile shows in the commands that need it.
void ExecuteStream::RenewSession() {
  engine_.RenewSession(call_.tenant(), session_).status().IgnoreError();
}

}  // namespace stride::api
