#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "stride/v1/session_service.pb.h"

namespace stride::engine {

// Sessions by name, `sessions/{id}`. Thread-safe; the caller has no transaction. No method waits
// for the session's work. A name of another tenant is NOT_FOUND, as one that does not exist.
class SessionService {
 public:
  virtual ~SessionService() = default;

  // An empty `session_id` gets a random one. ALREADY_EXISTS for a name in use; RESOURCE_EXHAUSTED
  // beyond the tenant's quota, or when few file descriptors are free.
  virtual absl::StatusOr<v1::Session> Create(const TenantId& tenant,
                                             const v1::CreateSessionRequest& request) = 0;
  // Each use of a session, this one too, extends its life by its ttl.
  virtual absl::StatusOr<v1::Session> Get(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::Session> Renew(const TenantId& tenant, const std::string& name) = 0;
  // Cancels the session's unfinished work and releases its arrays; some hundreds at a time, so it
  // takes longer for a session of millions of arrays.
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
  // Removes and returns the oldest text that the session's kernels printed, at most 1 MiB.
  virtual absl::StatusOr<v1::ReadPrintedResponse> ReadPrinted(const TenantId& tenant,
                                                              const std::string& name) = 0;
};

}  // namespace stride::engine
