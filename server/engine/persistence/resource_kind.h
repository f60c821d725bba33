#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/base/ids.h"
#include "server/base/page_size.h"
#include "server/engine/persistence/answer.h"
#include "stride/v1/error.pb.h"

namespace stride::engine {

// A kind of resources that tenants name `tenants/{tenant}/{collection}/{id}`: its names and errors.
// A name of another tenant is NOT_FOUND, as one that does not exist.
struct ResourceKind {
  const char* noun;        // "function", in errors
  const char* collection;  // "functions", in names; also the name of the quota
  v1::ErrorReason not_found;

  std::string NameOf(const TenantId& tenant, std::string_view id) const;
  // Checks `parent` of a request: the caller's tenant, or empty.
  absl::Status CheckParent(const std::string& parent, const TenantId& tenant) const;
  // INVALID_ARGUMENT, field `{noun}_id`.
  absl::Status CheckId(std::string_view id) const;
  // The id in a resource's name. Errors about the form name `field`.
  absl::StatusOr<std::string> IdOf(std::string_view name, const TenantId& tenant,
                                   std::string_view field = "name") const;
  absl::Status NotFound(std::string_view name) const;
  absl::Status AlreadyExists(std::string_view id) const;
  absl::Status QuotaExceeded(const TenantId& tenant, int64_t used, int64_t limit) const;
};

// Answers a List request. `entries(token, page_size)` reads a page (ResourceMap::PageAfter) under
// its lock; `write(entry, message)` fills in one message after it.
template <typename Request, typename Entries, typename Write, typename Message>
absl::Status ListResources(const ResourceKind& kind, const TenantId& tenant, const Request& request,
                           Entries entries, Write write,
                           google::protobuf::RepeatedPtrField<Message>* page, std::string* next) {
  if (absl::Status status = kind.CheckParent(request.parent(), tenant); !status.ok()) return status;
  const auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  WritePage(entries(request.page_token(), *page_size), *page_size, write, page, next);
  return absl::OkStatus();
}

}  // namespace stride::engine
