#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <grpcpp/support/byte_buffer.h>

#include "stride/v1/array.pb.h"

namespace stride::transfer {

constexpr int64_t kDefaultFetchBytes = int64_t{1} << 20;
constexpr int64_t kMaxFetchBytes = int64_t{4} << 20;
// The same for downloads into a region: the daemon copies this many bytes before it reports them.
constexpr int64_t kDefaultSharedFetchBytes = int64_t{4} << 20;
constexpr int64_t kMaxSharedFetchBytes = int64_t{64} << 20;

// FetchArrayResponse{array} in wire form.
grpc::ByteBuffer EncodeFetchArray(const v1::Array& array);

// FetchArrayResponse{chunk} in wire form.
grpc::ByteBuffer EncodeFetchChunk(int64_t offset, int64_t size);

// FetchArrayResponse{data} in wire form: a few bytes of framing, then `bytes`, which are not
// copied. `lease` is released, on any thread, when gRPC no longer uses them.
grpc::ByteBuffer EncodeFetchData(std::string_view bytes, std::shared_ptr<const void> lease);

}  // namespace stride::transfer
