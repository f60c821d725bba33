#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/store/array_info.h"
#include "stride/v1/array.pb.h"

namespace stride::ops {

inline constexpr int kMaxRank = 32;

using Shape = std::vector<int64_t>;

// Formats as `(2, 3)`.
std::string ToString(absl::Span<const int64_t> shape);

// Checks that the rank is at most kMaxRank, no extent is negative and the size in bytes fits int64.
// SIZE_LIMIT or INVALID_FIELD at `field`.
absl::Status CheckShape(absl::Span<const int64_t> shape, DType dtype, std::string_view field);

// Reads and checks the type and shape of a request.
absl::StatusOr<ArrayInfo> ReadSpec(const v1::ArraySpec& spec, std::string_view field);

// nullopt for unspecified; INVALID_FIELD if the number is no type.
absl::StatusOr<std::optional<DType>> ReadDataType(int number, std::string_view field);

// Broadcasts all shapes together by NumPy's rule. SHAPE_MISMATCH at `field`.
absl::StatusOr<Shape> BroadcastShapes(absl::Span<const Shape> shapes, std::string_view field);

// Returns the byte strides with which the array broadcasts to `shape`; the caller has checked that
// it does.
std::vector<int64_t> BroadcastStrides(const ArrayInfo& array, absl::Span<const int64_t> shape);

// Converts axes from [-rank, rank) to [0, rank) and sorts them; duplicates are errors.
absl::StatusOr<std::vector<int>> NormalizeAxes(absl::Span<const int32_t> axes, size_t rank,
                                               std::string_view field);

}  // namespace stride::ops
