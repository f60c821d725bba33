// Arrays' bytes by way of a region: calls carry offsets in place of bytes.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "client/cpp/src/bulk.h"
#include "client/cpp/src/local_calls.h"
#include "client/cpp/src/shared_region.h"
#include "stride/v1/array_service.pb.h"

namespace stride::internal {

// What every transfer through a region needs to know.
struct SharedCall {
  Channels& channels;
  LocalCalls* local;  // what its calls are made by where it can be; null: gRPC
  const SharedRegion& region;
  // The array's memory is the region's own, from this offset on: nothing is copied here. Else bytes
  // are copied through the region, which nobody else may use meanwhile.
  std::optional<int64_t> in_place;
  const TransferOptions& options;
  std::chrono::nanoseconds default_timeout;
};

// How much of a region copying through it can use.
int64_t BounceBytesForPut(int64_t size, int num_parts);
int64_t BounceBytesForFetch(int64_t size);

// As PutBulk and FetchBulk. After an error the daemon may for a moment still use the region.
// `header` lacks range and region.
Result<ArrayInfo> PutShared(const SharedCall& call, const v1::PutArrayRequest& header,
                            std::span<const std::byte> data);
// `begun`: bytes have come.
Result<void> FetchShared(const SharedCall& call, const std::string& name, std::span<std::byte> out,
                         std::atomic<bool>* begun);

}  // namespace stride::internal
