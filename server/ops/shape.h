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

// `(2, 3)`.
std::string ToString(absl::Span<const int64_t> shape);

// That the rank is within kMaxRank, no extent negative and the elements' bytes fit int64.
// SIZE_LIMIT or INVALID_FIELD at `field`.
absl::Status CheckShape(absl::Span<const int64_t> shape, DType dtype, std::string_view field);

// The type and shape that a request names, checked.
absl::StatusOr<ArrayInfo> ReadSpec(const v1::ArraySpec& spec, std::string_view field);

// nullopt when the number is unspecified; INVALID_FIELD when it names no type.
absl::StatusOr<std::optional<DType>> ReadDataType(int number, std::string_view field);

// NumPy's broadcasting of all shapes together. SHAPE_MISMATCH at `field`.
absl::StatusOr<Shape> BroadcastShapes(absl::Span<const Shape> shapes, std::string_view field);

// The byte strides that make an array appear in `shape`, to which it is known to broadcast.
std::vector<int64_t> BroadcastStrides(const ArrayInfo& array, absl::Span<const int64_t> shape);

// Axes from [-rank, rank) to [0, rank), none twice; sorted.
absl::StatusOr<std::vector<int>> NormalizeAxes(absl::Span<const int32_t> axes, size_t rank,
                                               std::string_view field);

}  // namespace stride::ops
