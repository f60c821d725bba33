#include "server/api/run_operation.h"

#include <utility>

#include "server/api/batch_audit.h"
#include "server/api/inline_outputs.h"
#include "server/api/operation_limits.h"
#include "server/base/error.h"
#include "server/session/resource_name.h"

namespace stride::api {
namespace {

// Framing and description of one result, generously.
constexpr int64_t kResultOverhead = 1024;

std::vector<bool> WantedInline(const v1::Operation& operation) {
  std::vector<bool> wanted;
  for (const OutputPlace& place : OutputsOf(operation))
    wanted.push_back(place.output->inline_result());
  return wanted;
}

// Sizes are known from acceptance on, so that a result too large for its reply is refused before it
// is computed.
absl::Status CheckInlineSize(const std::vector<bool>& wanted, const scheduler::Ticket& ticket) {
  int64_t total = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) total += ticket.OutputBytes(static_cast<int>(i)) + kResultOverhead;
  }
  return total > kMaxMessageBytes ? InlineTooLarge("outputs", total) : absl::OkStatus();
}

}  // namespace

absl::Status RunOperation::Check() const {
  if (!request_.session().empty()) {
    auto session = session::ParseSessionName(request_.session(), "session");
    if (!session.ok()) return session.status();
  }
  return PrefixField(CheckCounts(request_.operation()), "operation.");
}

absl::Status RunOperation::Submit(Call& call, absl::Duration upload_delay) {
  if (absl::Status status = call.AwaitUploadRate(upload_delay); !status.ok()) return status;
  call.Audit();
  auto accepted =
      engine_.Submit(call.tenant(), request_.session(), request_.operation(), call.deadline());
  if (!accepted.ok()) return PrefixField(accepted.status(), "operation.");
  ticket_ = *std::move(accepted);
  wanted_ = WantedInline(request_.operation());
  return PrefixField(CheckInlineSize(wanted_, *ticket_), "operation.");
}

absl::Status RunOperation::TakeResults(bool* complete) {
  // What is found out late, such as arguments that do not fit the compiled kernel, has a field too.
  absl::Status status = PrefixField(ticket_->Wait(absl::InfiniteFuture()), "operation.");
  if (!status.ok()) return status;
  scheduler::Ticket::Outcome outcome = ticket_->TakeOutcome(wanted_);
  *complete = true;
  for (size_t i = 0; i < outcome.arrays.size(); ++i) {
    v1::Result* result = response_.add_results();
    *result->mutable_array() = std::move(outcome.arrays[i]);
    if (i >= wanted_.size() || !wanted_[i]) continue;
    *complete = *complete && outcome.values[i].has_value();
    if (outcome.values[i].has_value())
      *result->mutable_inline_array() = *std::move(outcome.values[i]);
  }
  *response_.mutable_timeline() = std::move(outcome.timeline);
  return absl::OkStatus();
}

absl::Status RunOperation::ReadTheRest(absl::Time deadline) {
  for (int i = 0; i < response_.results_size() && i < static_cast<int>(wanted_.size()); ++i) {
    v1::Result* result = response_.mutable_results(i);
    if (!wanted_[i] || result->has_inline_array()) continue;
    auto value = ticket_->ReadInline(i, deadline);
    if (!value.ok()) return value.status();
    *result->mutable_inline_array() = *std::move(value);
  }
  return absl::OkStatus();
}

void RunOperation::Audit(Call& call) const {
  audit::Record* record = ticket_ == nullptr ? nullptr : call.Audit();
  if (record != nullptr)
    AddWork(response_.has_timeline() ? response_.timeline() : ticket_->timeline(), record);
}

}  // namespace stride::api
