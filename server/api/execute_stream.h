#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/arena.h"
#include "server/api/ack_queue.h"
#include "server/api/batch_audit.h"
#include "server/api/call.h"
#include "server/api/command_wire.h"
#include "server/api/compute_services.h"
#include "server/api/inline_outputs.h"
#include "server/api/operation_log.h"
#include "server/base/steady_time.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

class AckWriter;

// One Execute call. The RPC's thread reads commands and submits them to the engine in order. A
// second thread writes the answers in the same order, and waits for work where a command requires
// it, while the first thread accepts later commands. At most kMaxOutstanding commands are
// unanswered; then reading stops, and once the wire is full, so does the client.
//
// A broken stream cancels no accepted command. An open stream keeps its session alive.
//
// A fetch is bound to its array when it is read: later commands do not change the bytes that it
// returns. Its bytes are copied when it is answered.
class ExecuteStream {
 public:
  static constexpr size_t kMaxOutstanding = 10000;
  static constexpr int kMaxCommands = 1000;  // per message
  static constexpr size_t kRequestBlockBytes = 64 << 10;

  ExecuteStream(Call* call, const ComputeServices& services, CommandWire* wire)
      : call_(*call), services_(services), wire_(*wire), queue_(kMaxOutstanding) {}

  // Serves until the client closes the stream and all commands are answered, or until the stream
  // breaks.
  absl::Status Run();

 private:
  // The reader's part.
  // Reads the next message, which stays valid until the next read; null at the end.
  v1::ExecuteRequest* Read();
  absl::Status ReadAll();
  absl::Status TakeSession(const v1::ExecuteRequest& request);
  absl::Status CheckCommands(const v1::ExecuteRequest& request) const;
  // False: the client no longer reads.
  bool TakeAll(v1::ExecuteRequest* request);
  // `has_code`: the error of a launch that refers to another launch for its code and finds none.
  void Take(const v1::Command& command, absl::Status has_code, absl::Duration upload_delay,
            engine::SubmitBatch* batch, PendingAck* ack);
  void TakeOperation(const v1::Command& command, absl::Status has_code, absl::Duration upload_delay,
                     engine::SubmitBatch* batch, PendingAck* ack);
  void TakeFetch(const v1::Fetch& fetch, PendingAck* ack);

  // The writer's part.
  void WriteAll();
  // Each returns false when the client no longer reads.
  bool AnswerAll(std::vector<PendingAck>& acks, AckWriter& writer);
  bool AnswerAfterWait(PendingAck& ack, AckWriter& writer);
  absl::Status Complete(PendingAck& ack, AckWriter* writer, v1::CommandResult* result);
  // Repeats `wait` until its result is not DEADLINE_EXCEEDED, and returns the result. Writes
  // finished answers first if that takes long.
  template <typename Wait>
  auto Await(AckWriter* writer, Wait wait) -> decltype(wait(SteadyTime()));
  absl::Status AddInlineResults(PendingAck& ack, Results* results);
  SteadyTime Soon() const;
  void RenewWhenDue();

  Call& call_;
  const ComputeServices services_;
  CommandWire& wire_;
  // Memory of the message in processing; small messages need no other memory.
  std::vector<char> request_block_ = std::vector<char>(kRequestBlockBytes);
  google::protobuf::Arena request_arena_{request_block_.data(), request_block_.size()};
  AckQueue queue_;
  std::string session_;  // set by the first message, before the writer starts
  absl::Duration renew_interval_ = absl::InfiniteDuration();
  SteadyTime renewal_ =
      SteadyTime::InfiniteFuture();  // the writer's: when the session is to be renewed
  const std::shared_ptr<OperationLog> operations_ = OperationLog::Create();
  BatchAudit audit_{call_};
};

}  // namespace stride::api
