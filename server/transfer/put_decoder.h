#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "stride/v1/array_service.pb.h"

namespace stride::transfer {

// One PutArrayRequest, taken apart where it lies.
struct PutMessage {
  std::optional<v1::PutArrayRequest::Header> header;
  // The payload in order, borrowed from the slices that were decoded.
  std::vector<std::string_view> data;
  int64_t data_bytes = 0;
  // In place of the payload: where it lies in the call's region, as the client says.
  std::optional<v1::RegionRange> chunk;
};

// Reads the wire form of one PutArrayRequest scattered over `slices`. Agrees with protobuf on every
// input that CheckRequest lets through: fields in any order, the last `data` wins, chunks merge.
// UNIMPLEMENTED names a field that is not known, INVALID_ARGUMENT a field that is malformed or too
// large. Pure; keeps nothing.
absl::StatusOr<PutMessage> DecodePutMessage(absl::Span<const std::string_view> slices);

// The rules of a whole PutArray call: the first message has the header alone, every other has data
// alone, or a chunk alone where the header names a region. One thread.
class PutDecoder {
 public:
  static constexpr int64_t kMaxDataBytes = int64_t{4} << 20;  // of one message
  static constexpr int64_t kMaxHeaderBytes = int64_t{64} << 10;

  absl::StatusOr<PutMessage> Next(absl::Span<const std::string_view> slices);

 private:
  bool header_seen_ = false;
  bool shares_region_ = false;
};

}  // namespace stride::transfer
