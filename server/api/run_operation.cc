#include "server/api/run_operation.h"

#include <utility>

#include "server/api/batch_audit.h"
#include "server/api/inline_outputs.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/ops/operation_view.h"
#include "server/session/resource_name.h"

namespace stride::api {
absl::Status RunOperation::Check() const {
  if (!request_.session().empty()) {
    auto session = session::ParseSessionName(request_.session(), "session");
    if (!session.ok()) return session.status();
  }
  return PrefixField(ops::CheckLists(request_.operation()), "operation.");
}

absl::Status RunOperation::Submit(Call& call, absl::Duration upload_delay) {
  if (absl::Status status = call.AwaitUploadRate(upload_delay); !status.ok()) return status;
  call.Audit();
  const ops::OperationView operation(request_.operation());
  auto accepted = operations_.Submit(call.tenant(), request_.session(), operation, call.deadline());
  if (!accepted.ok()) return PrefixField(accepted.status(), "operation.");
  handle_ = *std::move(accepted);
  wanted_ = WantedInline(operation);
  return PrefixField(CheckInlineSize(wanted_, *handle_), "operation.");
}

absl::Status RunOperation::TakeResults(bool* complete) {
  // Errors found late, such as arguments that do not fit the compiled kernel, have a field too.
  absl::Status status = PrefixField(handle_->Wait(SteadyTime::InfiniteFuture()), "operation.");
  if (!status.ok()) return status;
  engine::OperationHandle::Outcome outcome = handle_->TakeOutcome(wanted_);
  *response_.mutable_timeline() = std::move(outcome.timeline);
  response_.set_printed(std::move(outcome.printed.text));
  response_.set_dropped_lines(outcome.printed.dropped_lines);
  *complete = AddResults(wanted_, std::move(outcome), response_.mutable_results());
  return absl::OkStatus();
}

absl::Status RunOperation::ReadTheRest(SteadyTime deadline) {
  return ReadMissing(wanted_, *handle_, deadline, response_.mutable_results());
}

void RunOperation::Audit(Call& call) const {
  audit::Record* record = handle_ == nullptr ? nullptr : call.Audit();
  if (record != nullptr)
    AddWork(response_.has_timeline() ? response_.timeline() : handle_->timeline(), record);
}

}  // namespace stride::api
