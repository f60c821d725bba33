#include "server/session/catalogue.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/status_bytes.h"
#include "server/base/steady_time.h"
#include "server/session/control_cost.h"
#include "server/tenant/transaction.h"

namespace stride::session {
namespace {

constexpr std::string_view kSessions = "sessions/";

absl::Status SessionNotFound(std::string_view id) {
  return NotFound(v1::ERROR_REASON_SESSION_NOT_FOUND, "session", SessionName(id));
}

absl::Status ArrayNotFound(const ArrayName& name) {
  return NotFound(v1::ERROR_REASON_ARRAY_NOT_FOUND, "array", name.ToString());
}

absl::Status Taken(const std::string& name) {
  return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                   absl::StrCat("already exists; delete it first or choose another name: ", name),
                   {{"name", name}});
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> Catalogue::CreateSession(
    engine::GlobalTransaction& transaction, const TenantId& tenant, const std::string& id,
    absl::Duration ttl, SteadyTime now, int max_sessions) {
  auto& sessions = partitions_.Of(transaction, tenant).sessions;
  if (sessions.Find(tenant, id) != nullptr) return Taken(SessionName(id));
  const int64_t count = sessions.Count(tenant);
  if (count >= max_sessions) {
    return QuotaExceeded(
        v1::ERROR_REASON_QUOTA, tenant.value, "too many open sessions; delete some",
        {.quota = "sessions", .limit = max_sessions, .used = count, .asked = 1}, absl::Seconds(10));
  }
  auto charge = accounts_->ControlOf(tenant)->Take(kSessionControlBytes);
  if (!charge.ok()) return charge.status();
  auto session = std::make_shared<Session>();
  session->control = *std::move(charge);
  session->id = id;
  session->name = std::make_shared<const std::string>(SessionName(id));
  session->tenant = tenant;
  session->create_time = now;
  session->ttl = ttl;
  session->expire_time = now + ttl;
  sessions.Set(tenant, id, session);
  for (Observer* observer : observers_) observer->Added(transaction, *session);
  return session;
}

void Catalogue::Restore(engine::GlobalTransaction& transaction, std::shared_ptr<Session> session) {
  session->name = std::make_shared<const std::string>(SessionName(session->id));
  session->control = accounts_->ControlOf(session->tenant)->Hold(kSessionControlBytes);
  for (Observer* observer : observers_) observer->Added(transaction, *session);
  partitions_.Of(transaction, session->tenant).sessions.Set(session->tenant, session->id, session);
}

void Catalogue::Close(engine::TenantTransaction& transaction, Session& session) {
  session.closed = true;
  std::shared_ptr<Session>& latest = partitions_.Of(transaction, session.tenant).latest;
  if (latest.get() == &session) latest = nullptr;
}

absl::StatusOr<std::shared_ptr<Session>> Catalogue::CloseSession(
    engine::TenantTransaction& transaction, const TenantId& tenant, std::string_view id) {
  const std::shared_ptr<Session> session = Lookup(transaction, tenant, id);
  if (session == nullptr) return SessionNotFound(id);
  Close(transaction, *session);
  return session;
}

void Catalogue::Tell(engine::TenantTransaction& transaction, const std::shared_ptr<Array>& added) {
  for (Observer* observer : observers_) observer->Added(transaction, added);
}

void Catalogue::TellRemoved(engine::TenantTransaction& transaction, Array& array) {
  for (Observer* observer : observers_) observer->Removed(transaction, array);
}

int Catalogue::NumSessions(engine::TenantTransaction& transaction, const TenantId& tenant) const {
  return static_cast<int>(partitions_.Of(transaction, tenant).sessions.Count(tenant));
}

absl::StatusOr<std::shared_ptr<Session>> Catalogue::FindSession(
    engine::TenantTransaction& transaction, const TenantId& tenant, std::string_view id,
    SteadyTime now) {
  const std::shared_ptr<Session>& session = Lookup(transaction, tenant, id);
  if (session == nullptr) return SessionNotFound(id);
  session->expire_time = now + session->ttl;
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> Catalogue::FindSessionNamed(
    engine::TenantTransaction& transaction, const TenantId& tenant, std::string_view name,
    std::string_view field, SteadyTime now) {
  // A name that is found was checked when the session was created.
  if (name.starts_with(kSessions)) {
    auto session = FindSession(transaction, tenant, name.substr(kSessions.size()), now);
    if (session.ok()) return session;
  }
  auto id = ParseSessionName(name, field);
  return id.ok() ? SessionNotFound(*id) : id.status();
}

const std::shared_ptr<Session>& Catalogue::Lookup(engine::TenantTransaction& transaction,
                                                  const TenantId& tenant, std::string_view id) {
  auto& [sessions, latest] = partitions_.Of(transaction, tenant);
  const bool again = latest != nullptr && latest->id == id && latest->tenant == tenant;
  if (!again) {
    const std::shared_ptr<Session>* const found = sessions.Find(tenant, id);
    latest = found != nullptr && !(*found)->closed ? *found : nullptr;
  }
  return latest;
}

void Catalogue::DeleteSession(engine::GlobalTransaction& transaction, const TenantId& tenant,
                              const std::string& id) {
  auto& sessions = partitions_.Of(transaction, tenant).sessions;
  const std::shared_ptr<Session>* const found = sessions.Find(tenant, id);
  if (found == nullptr) return;
  const std::shared_ptr<Session> session = *found;
  Close(transaction, *session);
  for (auto& [handle, array] : session->arrays) TellRemoved(transaction, *array);
  for (Observer* observer : observers_) observer->Removed(transaction, *session);
  sessions.Erase(tenant, id);
}

void Catalogue::ReleaseHandle(engine::TenantTransaction& transaction, Session& session,
                              uint64_t handle) {
  auto it = session.arrays.find(handle);
  if (it == session.arrays.end()) return;
  TellRemoved(transaction, *it->second);
  session.arrays.erase(it);
}

std::vector<std::shared_ptr<Session>> Catalogue::CloseExpiredSessions(
    engine::GlobalTransaction& transaction, SteadyTime now) {
  std::vector<std::shared_ptr<Session>> expired;
  for (const Partition& partition : partitions_.All(transaction)) {
    partition.sessions.ForEach([&](const std::string&, const std::shared_ptr<Session>& session) {
      if (session->num_pins > 0 || session->expire_time > now || session->closed) return;
      Close(transaction, *session);
      expired.push_back(session);
    });
  }
  return expired;
}

absl::StatusOr<std::shared_ptr<Array>> Catalogue::FindArray(const Session& session,
                                                            uint64_t handle) {
  auto it = session.arrays.find(handle);
  if (it == session.arrays.end()) return ArrayNotFound({.session = session.id, .handle = handle});
  return it->second;
}

absl::StatusOr<std::shared_ptr<Array>> Catalogue::FindArray(engine::TenantTransaction& transaction,
                                                            const TenantId& tenant,
                                                            const ArrayName& name, SteadyTime now) {
  if (!name.session.empty()) {
    auto session = FindSession(transaction, tenant, name.session, now);
    if (!session.ok()) return session.status();
    return FindArray(**session, name.handle);
  }
  auto it = named_.find(KeyView(tenant, name.id));
  if (name.tenant != tenant.value || it == named_.end()) return ArrayNotFound(name);
  return it->second;
}

bool Catalogue::Has(engine::TenantTransaction& transaction, const TenantId& tenant,
                    const ArrayName& name) const {
  if (name.session.empty())
    return name.tenant == tenant.value && named_.count(KeyView(tenant, name.id)) > 0;
  const auto* session = partitions_.Of(transaction, tenant).sessions.Find(tenant, name.session);
  return session != nullptr && (*session)->arrays.count(name.handle) > 0;
}

void Catalogue::SetTenant(Array& array, const TenantId& tenant) {
  array.tenant = tenant;
  if (array.shards == nullptr) return;
  for (const auto& part : array.shards->parts) part->tenant = tenant;
}

// Charges the cost of a handle or a name; the buffer charges its own.
absl::Status Catalogue::Charge(ControlAccount& account, int64_t bytes, Quota quota, Array& array) {
  const size_t num_parts = array.shards != nullptr ? array.shards->parts.size() : 0;
  const auto num_axes = static_cast<int64_t>(array.info->shape.size());
  bytes +=
      (1 + static_cast<int64_t>(num_parts)) * (kArrayControlBytes + num_axes * kAxisControlBytes);
  bytes += StatusBytes(array.error);
  if (quota == Quota::kExempt) {
    array.control = account.Hold(bytes);
    return absl::OkStatus();
  }
  auto charge = account.Take(bytes);
  if (charge.ok()) array.control = *std::move(charge);
  return charge.status();
}

absl::Status Catalogue::AddArray(engine::TenantTransaction& transaction, const TenantId& tenant,
                                 const ArrayName& name, std::shared_ptr<Array> array,
                                 SteadyTime now, Quota quota) {
  if (!name.session.empty()) {
    auto session = FindSession(transaction, tenant, name.session, now);
    if (!session.ok()) return session.status();
    return AddArray(transaction, **session, name.handle, std::move(array), quota);
  }
  array->name = CatalogueName(name.ToString());
  SetTenant(*array, tenant);
  if (name.tenant != tenant.value) {
    return ArrayNotFound(name);
  }
  if (named_.count(KeyView(tenant, name.id)) > 0) return Taken(array->name.ToString());
  const auto bytes = kNamedArrayControlBytes + 4 * static_cast<int64_t>(name.id.size());
  absl::Status charged = Charge(*accounts_->ControlOf(tenant), bytes, quota, *array);
  if (!charged.ok()) return charged;
  named_.emplace(std::make_pair(tenant, name.id), array);
  Tell(transaction, array);
  return absl::OkStatus();
}

absl::Status Catalogue::AddArray(engine::TenantTransaction& transaction, Session& session,
                                 uint64_t handle, std::shared_ptr<Array> array, Quota quota) {
  array->name = CatalogueName(session.name, handle);
  SetTenant(*array, session.tenant);
  auto [it, inserted] = session.arrays.try_emplace(handle, std::move(array));
  if (!inserted) return Taken(CatalogueName(session.name, handle).ToString());
  if (absl::Status charged = Charge(*session.control.account(), 0, quota, *it->second);
      !charged.ok()) {
    session.arrays.erase(it);
    return charged;
  }
  Tell(transaction, it->second);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Array>> Catalogue::RemoveArray(
    engine::TenantTransaction& transaction, const TenantId& tenant, const ArrayName& name,
    SteadyTime now) {
  auto array = FindArray(transaction, tenant, name, now);
  if (!array.ok()) return array.status();
  TellRemoved(transaction, **array);
  if (!name.session.empty()) {
    (*partitions_.Of(transaction, tenant).sessions.Find(tenant, name.session))
        ->arrays.erase(name.handle);
  } else {
    named_.erase({tenant, name.id});
  }
  return array;
}

std::vector<std::shared_ptr<Array>> Catalogue::TakeExpiredArrays(
    engine::GlobalTransaction& transaction, SteadyTime now) {
  std::vector<std::shared_ptr<Array>> taken;
  auto it = named_.lower_bound(next_looked_at_);
  for (int i = 0; i < kMostLookedAt && it != named_.end(); ++i) {
    if (it->second->expire_time <= now) {
      taken.push_back(it->second);
      TellRemoved(transaction, *it->second);
      it = named_.erase(it);
    } else {
      ++it;
    }
  }
  next_looked_at_ = it != named_.end() ? it->first : Key();
  return taken;
}

absl::StatusOr<std::vector<std::pair<std::string, std::shared_ptr<Array>>>> Catalogue::ListArrays(
    engine::TenantTransaction& transaction, const TenantId& tenant, const std::string& parent,
    int page_size, const std::string& token, SteadyTime now) {
  std::vector<std::pair<std::string, std::shared_ptr<Array>>> page;
  auto is_full = [&] { return page.size() > static_cast<size_t>(page_size); };
  if (parent.rfind("sessions/", 0) == 0) {
    auto id = ParseSessionName(parent, "parent");
    if (!id.ok()) return id.status();
    auto session = FindSession(transaction, tenant, *id, now);
    if (!session.ok()) return session.status();
    uint64_t after = 0;
    if (!token.empty() && !absl::SimpleAtoi(token, &after)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "page_token",
                          "not a token of an earlier page");
    }
    const auto& arrays = (*session)->arrays;
    for (auto it = arrays.upper_bound(after); it != arrays.end() && !is_full(); ++it)
      page.emplace_back(absl::StrCat(it->first), it->second);
    return page;
  }
  auto owner = ParseParent(parent, tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value) {
    return NotFound(v1::ERROR_REASON_ARRAY_NOT_FOUND, "tenant", absl::StrCat("tenants/", *owner));
  }
  for (auto it = named_.upper_bound(KeyView(tenant, token));
       it != named_.end() && it->first.first == tenant && !is_full(); ++it)
    page.emplace_back(it->first.second, it->second);
  return page;
}

}  // namespace stride::session
