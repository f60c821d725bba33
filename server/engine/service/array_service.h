#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/engine/service/download.h"
#include "server/engine/service/upload.h"
#include "stride/v1/array_service.pb.h"

namespace stride::engine {

// Arrays by name, and transfers of their bytes. Thread-safe; the caller has no transaction. A name
// of another tenant is NOT_FOUND, as one that does not exist. Error fields are relative to the
// message passed in.
class ArrayService {
 public:
  virtual ~ArrayService() = default;

  // Makes an array of zeros. Returns when the fill is accepted, not when it has ended.
  virtual absl::StatusOr<v1::Array> Create(const TenantId& tenant,
                                           const v1::CreateArrayRequest& request) = 0;
  virtual absl::StatusOr<v1::Array> Get(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListArraysResponse> List(const TenantId& tenant,
                                                      const v1::ListArraysRequest& request) = 0;
  // Removes the name; accepted operations that use the array continue. Blocks for the disk where
  // the array is kept there.
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;

  // Begins, or resumes, an upload of a range of the array. Blocks until its memory is available or
  // `deadline`, which also limits the waits of the upload.
  virtual absl::StatusOr<std::unique_ptr<Upload>> BeginUpload(
      const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) = 0;
  // Blocks until the array is ready or `deadline`, which also limits the waits of the download.
  virtual absl::StatusOr<std::unique_ptr<Download>> BeginDownload(
      const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) = 0;
  // Accepts a read of a handle's array in the order of operations: the download, whose Read waits
  // for the array, returns the bytes that the operations accepted before leave. `session` is
  // `sessions/{id}`. Does not block. SIZE_LIMIT above EngineOptions::max_inline_bytes.
  virtual absl::StatusOr<std::unique_ptr<Download>> BeginFetch(const TenantId& tenant,
                                                               const std::string& session,
                                                               uint64_t handle) = 0;
};

}  // namespace stride::engine
