// Transfers of arrays' bytes through a region: calls carry offsets in place of bytes.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "client/cpp/src/bulk.h"
#include "client/cpp/src/local_calls.h"
#include "client/cpp/src/shared_region.h"
#include "stride/v1/array_service.pb.h"

namespace stride::internal {

// Parameters of transfers through a region.
struct SharedCall {
  Channels& channels;
  LocalCalls* local;  // for calls over local connections, if available; null: gRPC
  const SharedRegion& region;
  // Offset of the array's memory if it lies in the region: nothing is copied here. Otherwise bytes
  // are copied through the region, which no other transfer may use at the same time.
  std::optional<int64_t> in_place;
  const TransferOptions& options;
  std::chrono::nanoseconds default_timeout;
};

// Bytes of a region that a copying transfer can use.
int64_t BounceBytesForPut(int64_t size, int num_parts);
int64_t BounceBytesForFetch(int64_t size);

// Like PutBulk and FetchBulk. After an error the daemon may still use the region for a moment.
// `header` has neither range nor region.
Result<ArrayInfo> PutShared(const SharedCall& call, const v1::PutArrayRequest& header,
                            std::span<const std::byte> data);
// `begun`: set once bytes have arrived.
Result<void> FetchShared(const SharedCall& call, const std::string& name, std::span<std::byte> out,
                         std::atomic<bool>* begun);

}  // namespace stride::internal
