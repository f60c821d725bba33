#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "stride/v1/array_service.pb.h"

namespace stride::transfer {

// One parsed PutArrayRequest.
struct PutMessage {
  std::optional<v1::PutArrayRequest::Header> header;
  // The payload in order: views into the decoded slices.
  std::vector<std::string_view> data;
  int64_t data_bytes = 0;
  // Instead of a payload: its place in the call's region, as the client states it.
  std::optional<v1::RegionRange> chunk;
};

// Parses the wire form of one PutArrayRequest scattered over `slices`. Agrees with protobuf on each
// input that CheckRequest accepts: fields in any order, the last `data` wins, chunks merge.
// UNIMPLEMENTED names an unknown field, INVALID_ARGUMENT a malformed or too large one. Pure; stores
// nothing.
absl::StatusOr<PutMessage> DecodePutMessage(absl::Span<const std::string_view> slices);

// Checks the sequence of a PutArray call: the first message has only the header. Each other message
// has only data, or only a chunk if the header names a region. One thread.
class PutDecoder {
 public:
  static constexpr int64_t kMaxDataBytes = int64_t{4} << 20;  // limit per message
  static constexpr int64_t kMaxHeaderBytes = int64_t{64} << 10;

  absl::StatusOr<PutMessage> Next(absl::Span<const std::string_view> slices);

 private:
  bool header_seen_ = false;
  bool shares_region_ = false;
};

}  // namespace stride::transfer
