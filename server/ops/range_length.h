#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/ops/scalar.h"

namespace stride::ops {

// Returns the number of elements of NumPy's arange: ceil((stop - start) / step), at least 0; exact
// for integers. The values are integers or doubles. INVALID_FIELD for a zero step or NaN bounds,
// SIZE_LIMIT for too many elements; at `field`.
absl::StatusOr<int64_t> RangeLength(const WeakScalar& start, const WeakScalar& stop,
                                    const WeakScalar& step, std::string_view field);

}  // namespace stride::ops
