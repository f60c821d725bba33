#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/ops/scalar.h"

namespace stride::ops {

// The number of elements of NumPy's arange: ceil((stop - start) / step), at least 0; exact for
// integers. INVALID_FIELD for a step of zero or bounds that are no numbers, SIZE_LIMIT when there
// are too many; at `field`. The values are integers or doubles.
absl::StatusOr<int64_t> RangeLength(const WeakScalar& start, const WeakScalar& stop,
                                    const WeakScalar& step, std::string_view field);

}  // namespace stride::ops
