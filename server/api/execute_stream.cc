#include "server/api/execute_stream.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/api/ack_writer.h"
#include "server/api/inline_outputs.h"
#include "server/api/serve.h"
#include "server/api/status.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/ops/operation_view.h"
#include "server/session/resource_name.h"

namespace stride::api {
namespace {

constexpr absl::Duration kShortestRenewal = absl::Milliseconds(100);
// Commands in one batch. Other calls of the tenant wait for it, some 0.1 ms at most.
constexpr size_t kMostInBatch = 16;

// The room for more goes once they are answered.
constexpr size_t kKeptAcks = 1024;

// Answers that are there wait so long for one that is not: a message costs the client more.
constexpr absl::Duration kSoon = absl::Microseconds(500);

// Whether a batch accepts the command.
bool MayBatch(const engine::OperationService& operations, const v1::Command& command) {
  return command.has_release() ||
         (command.has_operation() && operations.MayBatch(command.operation()));
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// When the operation must have ended.
absl::StatusOr<SteadyTime> DeadlineOf(const v1::Command& command) {
  if (!command.has_timeout()) return SteadyTime::InfiniteFuture();
  absl::Duration timeout =
      absl::Seconds(command.timeout().seconds()) + absl::Nanoseconds(command.timeout().nanos());
  if (timeout > absl::ZeroDuration()) return Now() + timeout;
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "timeout", "must be positive");
}

void MoveCode(v1::KernelLaunch* from, v1::KernelLaunch* to) {
  switch (from->code_case()) {
    case v1::KernelLaunch::kSource:
      *to->mutable_source() = std::move(*from->mutable_source());
      break;
    case v1::KernelLaunch::kPtx:
      *to->mutable_ptx() = std::move(*from->mutable_ptx());
      break;
    case v1::KernelLaunch::kBinary:
      *to->mutable_binary() = std::move(*from->mutable_binary());
      break;
    case v1::KernelLaunch::kModule:
      *to->mutable_module() = std::move(*from->mutable_module());
      break;
    case v1::KernelLaunch::CODE_NOT_SET:
      break;
  }
  to->mutable_options()->Swap(from->mutable_options());
}

// The code of one launch, which another has while this lives: a copy for each launch would let a
// small message take much memory.
class LentCode {
 public:
  LentCode() = default;
  LentCode(const LentCode&) = delete;
  LentCode& operator=(const LentCode&) = delete;
  ~LentCode() {
    if (borrower_ == nullptr) return;
    MoveCode(borrower_, owner_);
    borrower_->clear_code();
  }
  // To the command at this place of the message.
  absl::Status Lend(v1::ExecuteRequest* request, int place) {
    const uint32_t distance = request->commands(place).code_from();
    if (distance == 0) return absl::OkStatus();
    auto refuse = [](const char* why) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "code_from", why);
    };
    v1::Command* command = request->mutable_commands(place);
    if (!command->operation().has_kernel_launch()) return refuse("the command is no launch");
    if (distance > static_cast<uint32_t>(place)) return refuse("no such command in the message");
    v1::KernelLaunch* borrower = command->mutable_operation()->mutable_kernel_launch();
    v1::Command* owner = request->mutable_commands(place - static_cast<int>(distance));
    if (borrower->code_case() != v1::KernelLaunch::CODE_NOT_SET || borrower->options_size() > 0)
      return refuse("the launch has code or options of its own");
    if (owner->operation().kernel_launch().code_case() == v1::KernelLaunch::CODE_NOT_SET)
      return refuse("that command has no code");
    owner_ = owner->mutable_operation()->mutable_kernel_launch();
    borrower_ = borrower;
    MoveCode(owner_, borrower_);
    return absl::OkStatus();
  }

 private:
  v1::KernelLaunch* owner_ = nullptr;
  v1::KernelLaunch* borrower_ = nullptr;
};

void SetStatus(const absl::Status& status, v1::CommandResult* result) {
  if (!status.ok()) *result->mutable_status() = ToRpcStatus(status);
}

void Describe(const engine::OperationHandle& handle, v1::CommandResult* result) {
  handle.Describe([result] { return result->add_results()->mutable_array(); });
}

// Fills the result of a command that waits for nothing.
void Fill(PendingAck& ack, v1::CommandResult* result) {
  result->set_id(ack.id);
  SetStatus(ack.status, result);
  for (const session::PendingArray& array : ack.pending)
    session::Describe(array, result->add_results()->mutable_array());
  for (v1::Array& array : ack.arrays) *result->add_results()->mutable_array() = std::move(array);
}

}  // namespace

absl::Status ExecuteStream::Run() {
  v1::ExecuteRequest* first = Read();
  if (first == nullptr) return call_.cancelled() ? call_.EndOfWait() : absl::OkStatus();
  if (absl::Status status = TakeSession(*first); !status.ok()) return status;
  absl::StatusOr<std::thread> writer = StartThread([this] { WriteAll(); });
  if (!writer.ok()) return writer.status();
  absl::Status status = CheckCommands(*first);
  if (status.ok()) TakeAll(first);
  if (status.ok()) status = ReadAll();
  queue_.Close();
  writer->join();
  return call_.cancelled() ? call_.EndOfWait() : status;
}

v1::ExecuteRequest* ExecuteStream::Read() {
  request_arena_.Reset();
  auto* request = google::protobuf::Arena::CreateMessage<v1::ExecuteRequest>(&request_arena_);
  return wire_.Read(request) ? request : nullptr;
}

absl::Status ExecuteStream::ReadAll() {
  while (v1::ExecuteRequest* request = Read()) {
    if (!request->session().empty() && request->session() != session_) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "session",
                          "cannot change within a stream");
    }
    if (absl::Status status = CheckCommands(*request); !status.ok()) return status;
    if (!TakeAll(request)) return call_.EndOfWait();
  }
  return absl::OkStatus();
}

bool ExecuteStream::TakeAll(v1::ExecuteRequest* request) {
  absl::InlinedVector<PendingAck, kMostInBatch> acks;
  std::unique_ptr<engine::SubmitBatch> batch;
  for (int i = 0; i < request->commands_size(); ++i) {
    LentCode code;
    absl::Status has_code = code.Lend(request, i);
    const v1::Command& command = request->commands(i);
    const bool more = i + 1 < request->commands_size();
    const absl::Duration delay = services_.accounts->UploadDelay(call_.tenant());
    if (delay > absl::ZeroDuration() || !MayBatch(*services_.operations, command)) {
      batch.reset();
    } else if (batch == nullptr && more) {
      batch = services_.operations->BeginSubmitBatch(call_.tenant());
    }
    Take(command, std::move(has_code), delay, batch.get(), &acks.emplace_back());
    if (more && acks.size() < kMostInBatch && batch != nullptr) continue;
    batch.reset();
    if (!queue_.Push(absl::MakeSpan(acks), more)) return false;
    acks.clear();
  }
  return true;
}

absl::Status ExecuteStream::TakeSession(const v1::ExecuteRequest& request) {
  session_ = request.session();
  if (session_.empty()) return absl::OkStatus();
  auto id = session::ParseSessionName(session_, "session");
  if (!id.ok()) return id.status();
  auto session = services_.sessions->Renew(call_.tenant(), session_);
  if (!session.ok()) return session.status();
  absl::Duration ttl = FromProto(session->expire_time()) - WallNow();
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

void ExecuteStream::Take(const v1::Command& command, absl::Status has_code,
                         absl::Duration upload_delay, engine::SubmitBatch* batch, PendingAck* ack) {
  ack->id = command.id();
  if (!has_code.ok() && !command.has_operation()) {
    ack->status = std::move(has_code);
    return;
  }
  switch (command.kind_case()) {
    case v1::Command::kOperation:
      TakeOperation(command, std::move(has_code), upload_delay, batch, ack);
      break;
    case v1::Command::kRelease:
      ack->status = batch != nullptr ? batch->Release(session_, command.release())
                                     : services_.operations->Release(call_.tenant(), session_,
                                                                     command.release());
      break;
    case v1::Command::kFetch:
      TakeFetch(command.fetch(), ack);
      break;
    case v1::Command::kSynchronize:
      ack->kind = PendingAck::Kind::kSynchronize;
      ack->before = operations_->Mark();
      break;
    case v1::Command::KIND_NOT_SET:
      ack->status = InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kind",
                                 "missing: one of operation, release, fetch, synchronize");
  }
}

void ExecuteStream::TakeOperation(const v1::Command& command, absl::Status has_code,
                                  absl::Duration upload_delay, engine::SubmitBatch* batch,
                                  PendingAck* ack) {
  const ops::OperationView operation(command.operation());
  absl::StatusOr<SteadyTime> deadline = DeadlineOf(command);
  absl::Status status = deadline.status();
  if (status.ok()) status = std::move(has_code);
  if (status.ok()) status = PrefixField(ops::CheckLists(operation), "operation.");
  if (status.ok()) status = call_.AwaitUploadRate(upload_delay);
  bool by_engine = false;
  if (status.ok()) {
    auto handle = batch != nullptr ? batch->Submit(session_, operation, *deadline)
                                   : services_.operations->Submit(call_.tenant(), session_,
                                                                  operation, *deadline);
    status = handle.status();
    by_engine = !status.ok();
    if (handle.ok()) {
      ack->handle = *std::move(handle);
      ack->wanted = WantedInline(operation);
      status = CheckInlineSize(ack->wanted, *ack->handle);
    }
    status = PrefixField(status, "operation.");
  }
  if (!status.ok()) {
    operations_->Refused(status);
    if (!by_engine && batch != nullptr) batch->Refuse(session_, operation, status);
    if (!by_engine && batch == nullptr)
      services_.operations->Refuse(call_.tenant(), session_, operation, status);
    ack->status = std::move(status);
    if (auto unwanted = std::exchange(ack->handle, nullptr)) unwanted->Cancel(batch);
    return;
  }
  operations_->Accepted(*ack->handle, batch);
  audit_.Accepted(ack->handle, batch);
  if (command.wait() || !ack->wanted.empty()) {
    ack->kind = PendingAck::Kind::kWait;
    ack->timeline = command.wait();
  } else {
    if (!ack->handle->NotePending(&ack->pending, batch)) ack->arrays = ack->handle->Describe(batch);
    ack->handle.reset();  // it holds arrays
  }
}

void ExecuteStream::TakeFetch(const v1::Fetch& fetch, PendingAck* ack) {
  // Bound now: what comes later in the stream, or elsewhere, changes nothing of what it reads.
  auto taken = services_.arrays->BeginFetch(call_.tenant(), session_, fetch.handle());
  if (!taken.ok()) {
    ack->status = taken.status();
    return;
  }
  ack->kind = PendingAck::Kind::kFetch;
  ack->fetch = *std::move(taken);
}

void ExecuteStream::WriteAll() {
  AckWriter writer(&wire_);
  std::vector<PendingAck> acks;
  renewal_ = Now() + renew_interval_;
  for (;;) {
    RenewWhenDue();
    if (queue_.idle() && !writer.Flush()) break;
    const AckQueue::Next next = queue_.Pop(renewal_, &acks);
    if (next == AckQueue::Next::kTimeout) continue;
    if (next == AckQueue::Next::kEnd || !AnswerAll(acks, writer)) break;
    acks.clear();
    if (acks.capacity() > kKeptAcks) acks.shrink_to_fit();
  }
  writer.Flush();
  queue_.Break();
}

bool ExecuteStream::AnswerAll(std::vector<PendingAck>& acks, AckWriter& writer) {
  size_t answered = 0;
  for (PendingAck& ack : acks) {
    if (ack.kind == PendingAck::Kind::kReady) {
      v1::CommandResult* result = writer.AddSmall();
      if (result == nullptr) return false;
      Fill(ack, result);
    } else {
      queue_.Done(std::exchange(answered, 0));
      RenewWhenDue();
      if (!AnswerAfterWait(ack, writer)) return false;
      ack = {};  // releases what it owns
    }
    ++answered;
  }
  queue_.Done(answered);
  return true;
}

bool ExecuteStream::AnswerAfterWait(PendingAck& ack, AckWriter& writer) {
  auto result = std::make_unique<v1::CommandResult>();
  result->set_id(ack.id);
  const absl::Status status = Complete(ack, &writer, result.get());
  // Only a wait checks whether the client is connected; otherwise a failed write shows it.
  if (!status.ok() && call_.cancelled()) return false;
  SetStatus(status, result.get());
  return writer.Add(std::move(result));
}

absl::Status ExecuteStream::AddInlineResults(PendingAck& ack, Results* results) {
  if (AddResults(ack.wanted, ack.handle->TakeOutcome(ack.wanted), results)) return absl::OkStatus();
  return WaitFor(call_, call_.deadline(), [&](SteadyTime deadline) {
    return ReadMissing(ack.wanted, *ack.handle, deadline, results);
  });
}

SteadyTime ExecuteStream::Soon() const { return std::min(call_.deadline(), Now() + kSoon); }

template <typename Wait>
auto ExecuteStream::Await(AckWriter* writer, Wait wait) -> decltype(wait(SteadyTime())) {
  auto soon = wait(Soon());
  if (!absl::IsDeadlineExceeded(StatusOf(soon))) return soon;
  writer->Flush();  // a broken stream shows in the wait
  return WaitFor(call_, call_.deadline(), wait);
}

absl::Status ExecuteStream::Complete(PendingAck& ack, AckWriter* writer,
                                     v1::CommandResult* result) {
  switch (ack.kind) {
    case PendingAck::Kind::kReady:
      return absl::OkStatus();
    case PendingAck::Kind::kWait: {
      absl::Status status =
          Await(writer, [&](SteadyTime deadline) { return ack.handle->Wait(deadline); });
      if (status.ok() && !ack.wanted.empty()) {
        status = AddInlineResults(ack, result->mutable_results());
      } else {
        Describe(*ack.handle, result);
      }
      if (ack.timeline) *result->mutable_timeline() = ack.handle->timeline();
      return PrefixField(status, "operation.");
    }
    case PendingAck::Kind::kFetch: {
      auto array = Await(writer, [&](SteadyTime deadline) { return ack.fetch->Read(deadline); });
      if (!array.ok()) return array.status();
      int64_t size = static_cast<int64_t>(array->ByteSizeLong());
      services_.accounts->AddDownload(call_.tenant(), static_cast<int64_t>(array->data().size()));
      if (size > AckWriter::kMaxResultBytes) return InlineTooLarge("fetch.handle", size);
      *result->add_results()->mutable_inline_array() = *std::move(array);
      return absl::OkStatus();
    }
    case PendingAck::Kind::kSynchronize:
      if (!operations_->HaveEnded(ack.before, Soon())) writer->Flush();
      return WaitFor(call_, call_.deadline(), [&](SteadyTime deadline) {
        return operations_->WaitFor(ack.before, deadline);
      });
  }
  return absl::OkStatus();
}

// The commands that need a deleted session report it, so this ignores the error.
void ExecuteStream::RenewWhenDue() {
  if (Now() < renewal_) return;
  services_.sessions->Renew(call_.tenant(), session_).status().IgnoreError();
  renewal_ = Now() + renew_interval_;
}

}  // namespace stride::api
