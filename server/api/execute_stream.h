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

// One Execute call. The RPC's thread reads commands and hands them to the engine in order; a second
// thread writes the answers in the same order, waiting for work where a command asks for it, while
// later commands are already being accepted. At most kMaxOutstanding commands are unanswered; then
// reading stops, and with it, when the wire is full, the client.
//
// A broken stream cancels nothing that was accepted. While the stream is open its session stays
// alive.
//
// A fetch is bound to its array when it is read: later commands do not change the bytes that it
// returns. They are copied when its turn to be answered comes.
class ExecuteStream {
 public:
  static constexpr size_t kMaxOutstanding = 10000;
  static constexpr int kMaxCommands = 1000;  // in one message
  static constexpr size_t kRequestBlockBytes = 64 << 10;

  ExecuteStream(Call* call, const ComputeServices& services, CommandWire* wire)
      : call_(*call), services_(services), wire_(*wire), queue_(kMaxOutstanding) {}

  // Until the client closes the stream and all is answered, or it breaks.
  absl::Status Run();

 private:
  // The reader's side.
  // The next message, which stays until the one after it is read; null at the end.
  v1::ExecuteRequest* Read();
  absl::Status ReadAll();
  absl::Status TakeSession(const v1::ExecuteRequest& request);
  absl::Status CheckCommands(const v1::ExecuteRequest& request) const;
  // False: nobody reads the answers any more.
  bool TakeAll(v1::ExecuteRequest* request);
  // `has_code`: why a launch lacks the code that it is to have from another.
  void Take(const v1::Command& command, absl::Status has_code, absl::Duration upload_delay,
            scheduler::SubmitBatch* batch, PendingAck* ack);
  void TakeOperation(const v1::Command& command, absl::Status has_code, absl::Duration upload_delay,
                     scheduler::SubmitBatch* batch, PendingAck* ack);
  void TakeFetch(const v1::Fetch& fetch, PendingAck* ack);

  // The writer's side.
  void WriteAll();
  // Each false: nobody reads the answers any more.
  bool AnswerAll(std::vector<PendingAck>& acks, AckWriter& writer);
  bool AnswerAfterWait(PendingAck& ack, AckWriter& writer);
  absl::Status Complete(PendingAck& ack, AckWriter* writer, v1::CommandResult* result);
  // What `wait` says once it does not say DEADLINE_EXCEEDED; when that is not soon, answers that
  // are there go first.
  template <typename Wait>
  auto Await(AckWriter* writer, Wait wait) -> decltype(wait(SteadyTime()));
  absl::Status AddInlineResults(PendingAck& ack, Results* results);
  SteadyTime Soon() const;
  void RenewWhenDue();

  Call& call_;
  const ComputeServices services_;
  CommandWire& wire_;
  // Of the message that is being taken: small ones take no memory but this.
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
