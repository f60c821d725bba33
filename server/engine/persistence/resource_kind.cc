#include "server/engine/persistence/resource_kind.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"
#include "server/session/resource_name.h"

namespace stride::engine {

std::string ResourceKind::NameOf(const TenantId& tenant, std::string_view id) const {
  return absl::StrCat("tenants/", tenant.value, "/", collection, "/", std::string(id));
}

absl::Status ResourceKind::CheckParent(const std::string& parent, const TenantId& tenant) const {
  const auto owner = session::ParseParent(parent, tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner == tenant.value) return absl::OkStatus();
  return stride::NotFound(not_found, "tenant", absl::StrCat("tenants/", *owner));
}

absl::Status ResourceKind::CheckId(std::string_view id) const {
  if (session::IsResourceId(id)) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(noun, "_id"),
                      "must match [a-zA-Z0-9][a-zA-Z0-9._-]{0,254}");
}

absl::StatusOr<std::string> ResourceKind::IdOf(std::string_view name, const TenantId& tenant,
                                               std::string_view field) const {
  auto parsed = session::ParseTenantResource(name, collection, field);
  if (!parsed.ok()) return parsed.status();
  if (parsed->tenant != tenant.value) return NotFound(name);
  return std::move(parsed->id);
}

absl::Status ResourceKind::NotFound(std::string_view name) const {
  return stride::NotFound(not_found, noun, name);
}

absl::Status ResourceKind::AlreadyExists(std::string_view id) const {
  const std::string name(id);
  return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                   absl::StrCat("the ", noun, " exists already: ", name), {{"name", name}});
}

absl::Status ResourceKind::QuotaExceeded(const TenantId& tenant, int64_t used,
                                         int64_t limit) const {
  return stride::QuotaExceeded(
      v1::ERROR_REASON_QUOTA, tenant.value,
      absl::StrCat("the tenant has as many ", collection, " as it may; delete some"),
      {.quota = collection, .limit = limit, .used = used, .asked = 1}, absl::Seconds(60));
}

}  // namespace stride::engine
