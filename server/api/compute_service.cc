#include "server/api/compute_service.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/api/execute_stream.h"
#include "server/api/inline_outputs.h"
#include "server/api/operation_limits.h"
#include "server/api/serve.h"
#include "server/base/error.h"
#include "server/session/resource_name.h"

namespace stride::api {
namespace {

// Framing and description of one result, generously.
constexpr int64_t kResultOverhead = 1024;

// Shapes are known from acceptance on, so that a result too large for its reply is refused before
// it is computed.
absl::Status CheckInlineSize(const v1::Operation& operation, const std::vector<v1::Array>& arrays) {
  std::vector<OutputPlace> outputs = OutputsOf(operation);
  int64_t total = 0;
  for (size_t i = 0; i < outputs.size() && i < arrays.size(); ++i) {
    if (outputs[i].output->inline_result()) total += arrays[i].size_bytes() + kResultOverhead;
  }
  return total > kMaxMessageBytes ? InlineTooLarge("operation.outputs", total) : absl::OkStatus();
}

absl::Status CollectResults(const Call& call, const v1::Operation& operation,
                            scheduler::Ticket& ticket, v1::RunResponse* response) {
  std::vector<OutputPlace> outputs = OutputsOf(operation);
  std::vector<v1::Array> arrays = ticket.Describe();
  for (size_t i = 0; i < arrays.size(); ++i) {
    v1::Result* result = response->add_results();
    *result->mutable_array() = std::move(arrays[i]);
    if (i >= outputs.size() || !outputs[i].output->inline_result()) continue;
    absl::Status status = Into(ticket.ReadInline(static_cast<int>(i), call.deadline()),
                               result->mutable_inline_array());
    if (!status.ok()) return status;
  }
  *response->mutable_timeline() = ticket.timeline();
  return absl::OkStatus();
}

// What the audit log tells of an operation.
void AddWork(const scheduler::Ticket& ticket, audit::Record* record) {
  v1::Timeline timeline = ticket.timeline();
  ++record->num_operations;
  record->device = timeline.device();
  record->device_seconds += static_cast<double>(timeline.run().seconds()) +
                            1e-9 * static_cast<double>(timeline.run().nanos());
}

absl::Status RunOne(Call& call, scheduler::Engine& engine, const v1::RunRequest& request,
                    v1::RunResponse* response) {
  const v1::Operation& operation = request.operation();
  if (!request.session().empty()) {
    auto session = session::ParseSessionName(request.session(), "session");
    if (!session.ok()) return session.status();
  }
  if (absl::Status status = CheckCounts(operation); !status.ok()) {
    return PrefixField(status, "operation.");
  }
  absl::Status rate = call.AwaitUploadRate(engine.accounts().UploadDelay(call.tenant()));
  if (!rate.ok()) return rate;
  audit::Record* record = call.Audit();
  auto ticket = engine.Submit(call.tenant(), request.session(), operation, call.deadline());
  if (!ticket.ok()) return PrefixField(ticket.status(), "operation.");
  absl::Status status = CheckInlineSize(operation, (*ticket)->Describe());
  if (status.ok()) {
    // What is found out late, such as arguments that do not fit the compiled kernel, has a field
    // too.
    status = PrefixField(WaitFor(call, call.deadline(),
                                 [&](absl::Time deadline) { return (*ticket)->Wait(deadline); }),
                         "operation.");
  }
  if (record != nullptr) AddWork(**ticket, record);
  // Nobody waits for it any more.
  if (!(*ticket)->done()) (*ticket)->Cancel();
  if (!status.ok()) return status;
  return CollectResults(call, operation, **ticket, response);
}

}  // namespace

grpc::Status ComputeServiceAdapter::Run(grpc::ServerContext* context, const v1::RunRequest* request,
                                        v1::RunResponse* response) {
  return Serve(environment_, context, "ComputeService/Run",
               [&](Call& call) { return RunOne(call, *engine_, *request, response); });
}

grpc::Status ComputeServiceAdapter::Execute(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>* stream) {
  return Serve(environment_, context, "ComputeService/Execute",
               [&](Call& call) { return ExecuteStream(&call, engine_, stream).Run(); });
}

}  // namespace stride::api
