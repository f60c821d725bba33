#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/session/array.h"
#include "server/tenant/transaction.h"
#include "stride/v1/array.pb.h"

namespace stride::engine {

// Reads whole arrays into host memory, in C order, on behalf of operations. Thread-safe.
class ArrayReader {
 public:
  virtual ~ArrayReader() = default;
  // Copies the content at once. Empty when the array has more than a few kilobytes, has gaps, is
  // spread over devices, is being written or copied, or lies in memory that the daemon has not
  // mapped.
  virtual std::optional<v1::InlineArray> ReadAtOnce(TenantTransaction& transaction,
                                                    const TenantId& tenant,
                                                    const session::Array& array) = 0;
  // Reads a complete, contiguous array for a loop or a branch in flight. Blocks for the copy. The
  // caller has no transaction.
  virtual absl::StatusOr<v1::InlineArray> ReadForBody(const TenantId& tenant,
                                                      std::shared_ptr<session::Array> array) = 0;
  // Blocks until the array is ready and copied, or `deadline`. SIZE_LIMIT above
  // EngineOptions::max_inline_bytes. The caller has no transaction.
  virtual absl::StatusOr<v1::InlineArray> ReadInline(const TenantId& tenant,
                                                     std::shared_ptr<session::Array> array,
                                                     SteadyTime deadline) = 0;
};

}  // namespace stride::engine
