#pragma once

#include <cstdint>
#include <string_view>

#include <google/protobuf/duration.pb.h>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/store/array_info.h"
#include "stride/v1/array.pb.h"

namespace stride::engine {

inline constexpr int kMaxRank = 32;

// A client's claim of type and shape, checked before anything is reserved: known dtype, at most
// kMaxRank axes, no negative extent, at most `max_bytes` in all. Errors name fields below `field`.
absl::StatusOr<ArrayInfo> CheckSpec(const v1::ArraySpec& spec, int64_t max_bytes,
                                    std::string_view field);

// The bytes of a range, or all bytes of an array if the client names no range. Errors name `range`.
struct Bytes {
  int64_t begin = 0, end = 0;
};
absl::StatusOr<Bytes> CheckRange(const v1::ByteRange* range, int64_t array_bytes);

// When a new array with this `ttl` expires. Only an array outside a session may have one.
absl::StatusOr<SteadyTime> ExpireTime(bool has_ttl, const google::protobuf::Duration& ttl,
                                      bool in_session, SteadyTime now);

}  // namespace stride::engine
