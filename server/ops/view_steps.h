#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/store/array_info.h"
#include "stride/v1/operation.pb.h"

namespace stride::ops {

// Applies one step of a view and returns the resulting array in the same buffer. Errors have paths
// below `field`.
absl::StatusOr<ArrayInfo> ApplySlice(ArrayInfo array, const v1::View::Slice& slice,
                                     std::string_view field);
absl::StatusOr<ArrayInfo> ApplyTranspose(ArrayInfo array, const v1::View::Transpose& transpose,
                                         std::string_view field);
absl::StatusOr<ArrayInfo> ApplyReshape(ArrayInfo array, const v1::View::Reshape& reshape,
                                       std::string_view field);
absl::StatusOr<ArrayInfo> ApplyBroadcast(ArrayInfo array, const v1::View::Broadcast& broadcast,
                                         std::string_view field);

}  // namespace stride::ops
