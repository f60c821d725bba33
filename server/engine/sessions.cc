#include "server/engine/sessions.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/printed_text.h"
#include "server/base/random_id.h"
#include "server/engine/jobs/session_end.h"
#include "server/engine/persistence/describe.h"
#include "server/session/resource_name.h"

namespace stride::engine {

// A session's arrays and its worker take descriptors. Ends idle workers first, which frees
// descriptors for later sessions.
absl::Status Sessions::Admit(GlobalTransaction& transaction) {
  const auto& count = core_->options.free_descriptors;
  if (!count) return absl::OkStatus();
  const int64_t free = count();
  if (free > 2 * core_->options.descriptor_reserve) return absl::OkStatus();
  scheduler_->starter().GiveWay(transaction, std::nullopt);
  if (free > core_->options.descriptor_reserve) return absl::OkStatus();
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUEUE_FULL,
                  "the service has no file descriptors left for another session; end sessions, or "
                  "raise its limit (see `stride doctor`)",
                  absl::Seconds(1), {{"resource", "file descriptors"}});
}

absl::StatusOr<v1::Session> Sessions::Create(const TenantId& tenant,
                                             const v1::CreateSessionRequest& request) {
  std::string id = request.session_id().empty() ? RandomId(26) : request.session_id();
  if (!session::IsSessionId(id)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "session_id",
                        "must match [a-z0-9][a-z0-9-]{0,62}");
  }
  absl::Duration ttl = core_->options.default_session_ttl;
  if (request.has_ttl()) {
    ttl = absl::Seconds(request.ttl().seconds()) + absl::Nanoseconds(request.ttl().nanos());
    if (ttl <= absl::ZeroDuration() || ttl > core_->options.max_session_ttl) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "ttl",
                          absl::StrCat("more than 0 and at most ",
                                       absl::FormatDuration(core_->options.max_session_ttl)));
    }
  }
  // A job has a session too, and a quota of its own.
  int64_t limit = *core_->accounts->QuotaOf(tenant).sessions + core_->accounts->live_jobs(tenant);
  GlobalTransaction transaction(*core_);
  if (absl::Status admitted = Admit(transaction); !admitted.ok()) return admitted;
  auto session =
      core_->catalogue.CreateSession(transaction, tenant, id, ttl, core_->Now(),
                                     static_cast<int>(std::min<int64_t>(limit, INT_MAX)));
  if (!session.ok()) return session.status();
  return Describe(**session);
}

absl::StatusOr<v1::Session> Sessions::Get(const TenantId& tenant, const std::string& name) {
  auto id = session::ParseSessionName(name, "name");
  if (!id.ok()) return id.status();
  TenantTransaction transaction(*core_, tenant);
  auto session = core_->catalogue.FindSession(transaction, tenant, *id, core_->Now());
  if (!session.ok()) return session.status();
  return Describe(**session);
}

absl::StatusOr<v1::Session> Sessions::Renew(const TenantId& tenant, const std::string& name) {
  return Get(tenant, name);
}

absl::Status Sessions::Delete(const TenantId& tenant, const std::string& name) {
  return EndSession(core_, scheduler_, tenant, name);
}

absl::StatusOr<v1::ReadPrintedResponse> Sessions::ReadPrinted(const TenantId& tenant,
                                                              const std::string& name) {
  auto id = session::ParseSessionName(name, "name");
  if (!id.ok()) return id.status();
  TenantTransaction transaction(*core_, tenant);
  auto session = core_->catalogue.FindSession(transaction, tenant, *id, core_->Now());
  if (!session.ok()) return session.status();
  session::PrintedOutput::Piece piece = (*session)->printed.Take(kMaxPrintedBytes);
  v1::ReadPrintedResponse response;
  response.set_text(std::move(piece.printed.text));
  response.set_dropped_lines(piece.printed.dropped_lines);
  response.set_more(piece.more);
  return response;
}

}  // namespace stride::engine
