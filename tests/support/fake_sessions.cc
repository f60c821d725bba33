#include "tests/support/fake_sessions.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/error.h"

namespace stride::testing {

std::vector<std::string> FakeSessions::tenants_seen() const {
  std::lock_guard lock(mutex_);
  return tenants_;
}

absl::StatusOr<v1::Session> FakeSessions::Create(const TenantId& tenant,
                                                 const v1::CreateSessionRequest& request) {
  std::lock_guard lock(mutex_);
  tenants_.push_back(tenant.value);
  v1::Session session;
  session.set_name(absl::StrCat("sessions/", request.session_id()));
  return session;
}

absl::StatusOr<v1::Session> FakeSessions::Get(const TenantId&, const std::string& name) {
  if (name == "sessions/none") return NotFound(v1::ERROR_REASON_SESSION_NOT_FOUND, "session", name);
  if (name == "sessions/broken") return absl::InternalError("pointer 0xdeadbeef in /secret/path");
  v1::Session session;
  session.set_name(name);
  session.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 600);
  return session;
}

absl::StatusOr<v1::Session> FakeSessions::Renew(const TenantId& tenant, const std::string& name) {
  return Get(tenant, name);
}

absl::Status FakeSessions::Delete(const TenantId& tenant, const std::string& name) {
  return Get(tenant, name).status();
}

absl::StatusOr<v1::ReadPrintedResponse> FakeSessions::ReadPrinted(const TenantId& tenant,
                                                                  const std::string& name) {
  if (auto session = Get(tenant, name); !session.ok()) return session.status();
  return v1::ReadPrintedResponse();
}

}  // namespace stride::testing
