#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"

namespace stride::session {

// Resource names are claims of a client: parsed strictly, never used as a path.

// `sessions/{id}/arrays/{handle}` or `tenants/{tenant}/arrays/{id}`.
struct ArrayName {
  std::string session;  // set: a handle of this session
  uint64_t handle = 0;
  std::string tenant;  // set: a named array
  std::string id;
  std::string ToString() const;
};

// Name of an array in a catalogue. A handle stores only its number; the name is formatted on
// request, which is rare.
class CatalogueName {
 public:
  CatalogueName() = default;  // an array without a name
  // `session`: `sessions/{id}`.
  CatalogueName(std::shared_ptr<const std::string> session, uint64_t handle)
      : session_(std::move(session)), handle_(handle) {}
  // `tenants/{tenant}/arrays/{id}`.
  explicit CatalogueName(std::string name) : name_(std::move(name)) {}

  bool empty() const { return !is_handle() && !is_named(); }
  bool is_handle() const { return session_ != nullptr; }
  // A tenant's array with an id.
  bool is_named() const { return !name_.empty(); }
  std::string ToString() const;
  // `sessions/{id}`; empty unless it is a handle.
  std::string_view session() const { return is_handle() ? *session_ : std::string_view(); }

 private:
  std::shared_ptr<const std::string> session_;
  uint64_t handle_ = 0;
  std::string name_;
};

absl::StatusOr<ArrayName> ParseArrayName(std::string_view name, std::string_view field);
// From the parent and id of a request that creates an array.
absl::StatusOr<ArrayName> MakeArrayName(std::string_view parent, std::string_view id,
                                        std::string_view parent_field, std::string_view id_field);

// `sessions/{id}`.
std::string SessionName(std::string_view id);
// The id after `sessions/`.
absl::StatusOr<std::string> ParseSessionName(std::string_view name, std::string_view field);

// `tenants/{tenant}/{collection}/{id}`, where collection is `jobs` or `modules`.
struct TenantResource {
  std::string tenant;
  std::string id;
};
absl::StatusOr<TenantResource> ParseTenantResource(std::string_view name,
                                                   std::string_view collection,
                                                   std::string_view field);
// Parses `tenants/{tenant}`; empty means the caller's tenant.
absl::StatusOr<std::string> ParseParent(std::string_view parent, const TenantId& caller,
                                        std::string_view field);

// INVALID_ARGUMENT unless it is `sessions/{session}/regions/{id}`.
absl::Status CheckRegionName(std::string_view name, std::string_view field);

// [a-z0-9][a-z0-9-]{0,62}
bool IsSessionId(std::string_view id);
// [a-zA-Z0-9][a-zA-Z0-9._-]{0,254}
bool IsResourceId(std::string_view id);

}  // namespace stride::session
