#include "server/session/resource_name.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::session {
namespace {

using Parts = absl::InlinedVector<std::string_view, 4>;

Parts Split(std::string_view name) {
  Parts parts;
  while (true) {
    size_t slash = name.find('/');
    parts.push_back(name.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    name.remove_prefix(slash + 1);
  }
}

absl::Status Malformed(std::string_view field, std::string_view expected) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      absl::StrCat("not a resource name; expected ", std::string(expected)));
}

// Handles in names are plain decimals: no sign, no leading zero, not 0.
bool ParseHandle(std::string_view text, uint64_t* handle) {
  if (text.empty() || text[0] < '1' || text[0] > '9') return false;
  return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), handle);
}

constexpr char kArrayForms[] = "sessions/{session}/arrays/{handle} or tenants/{tenant}/arrays/{id}";

}  // namespace

std::string ArrayName::ToString() const {
  if (!session.empty()) return absl::StrCat(SessionName(session), "/arrays/", handle);
  return absl::StrCat("tenants/", tenant, "/arrays/", id);
}

std::string CatalogueName::ToString() const {
  return is_handle() ? absl::StrCat(*session_, "/arrays/", handle_) : name_;
}

bool IsSessionId(std::string_view id) {
  auto lower_or_digit = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !id.empty() && id.size() <= 63 && lower_or_digit(id[0]) &&
         std::all_of(id.begin(), id.end(), [&](char c) { return lower_or_digit(c) || c == '-'; });
}

bool IsResourceId(std::string_view id) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !id.empty() && id.size() <= 255 && plain(id[0]) &&
         std::all_of(id.begin(), id.end(),
                     [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
}

absl::StatusOr<ArrayName> MakeArrayName(std::string_view parent, std::string_view id,
                                        std::string_view parent_field, std::string_view id_field) {
  Parts parts = Split(parent);
  ArrayName name;
  if (parts.size() == 2 && parts[0] == "sessions" && IsSessionId(parts[1])) {
    name.session = std::string(parts[1]);
    if (!ParseHandle(id, &name.handle)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, id_field,
                          "a session's array is named by its handle: a decimal number from 1");
    }
    return name;
  }
  if (parts.size() == 2 && parts[0] == "tenants" && IsSessionId(parts[1])) {
    if (!IsResourceId(id)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, id_field,
                          "must match [a-zA-Z0-9][a-zA-Z0-9._-]{0,254}");
    }
    name.tenant = std::string(parts[1]);
    name.id = std::string(id);
    return name;
  }
  return Malformed(parent_field, "sessions/{session} or tenants/{tenant}");
}

absl::StatusOr<ArrayName> ParseArrayName(std::string_view name, std::string_view field) {
  Parts parts = Split(name);
  if (parts.size() != 4 || parts[2] != "arrays") return Malformed(field, kArrayForms);
  auto parsed =
      MakeArrayName(name.substr(0, parts[0].size() + 1 + parts[1].size()), parts[3], field, field);
  if (!parsed.ok()) return Malformed(field, kArrayForms);
  return parsed;
}

std::string SessionName(std::string_view id) { return std::string("sessions/").append(id); }

absl::StatusOr<std::string> ParseSessionName(std::string_view name, std::string_view field) {
  Parts parts = Split(name);
  if (parts.size() != 2 || parts[0] != "sessions" || !IsSessionId(parts[1])) {
    return Malformed(field, "sessions/{session}");
  }
  return std::string(parts[1]);
}

absl::Status CheckRegionName(std::string_view name, std::string_view field) {
  Parts parts = Split(name);
  if (parts.size() != 4 || parts[0] != "sessions" || !IsSessionId(parts[1]) ||
      parts[2] != "regions" || !IsResourceId(parts[3])) {
    return Malformed(field, "sessions/{session}/regions/{region}");
  }
  return absl::OkStatus();
}

absl::StatusOr<TenantResource> ParseTenantResource(std::string_view name,
                                                   std::string_view collection,
                                                   std::string_view field) {
  Parts parts = Split(name);
  if (parts.size() != 4 || parts[0] != "tenants" || !IsSessionId(parts[1]) ||
      parts[2] != collection || !IsResourceId(parts[3])) {
    return Malformed(field, absl::StrCat("tenants/{tenant}/", std::string(collection), "/{id}"));
  }
  return TenantResource{std::string(parts[1]), std::string(parts[3])};
}

absl::StatusOr<std::string> ParseParent(std::string_view parent, const TenantId& caller,
                                        std::string_view field) {
  if (parent.empty()) return caller.value;
  Parts parts = Split(parent);
  if (parts.size() != 2 || parts[0] != "tenants" || !IsSessionId(parts[1])) {
    return Malformed(field, "tenants/{tenant}");
  }
  return std::string(parts[1]);
}

}  // namespace stride::session
