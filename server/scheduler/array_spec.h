#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/store/array_info.h"
#include "stride/v1/array.pb.h"

namespace stride::scheduler {

inline constexpr int kMaxRank = 32;

// A client's claim of type and shape, checked before anything is reserved: known dtype, at most
// kMaxRank axes, no negative extent, at most `max_bytes` in all. Errors name fields below `field`.
absl::StatusOr<ArrayInfo> CheckSpec(const v1::ArraySpec& spec, int64_t max_bytes,
                                    std::string_view field);

}  // namespace stride::scheduler
