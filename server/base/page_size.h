#pragma once

#include "absl/status/statusor.h"

namespace stride {

// The number of entries in a page of a List call, from the request's `page_size`: 0 means the
// default. INVALID_ARGUMENT, field `page_size`, when it is negative or above 1000.
absl::StatusOr<int> PageSize(int requested);

}  // namespace stride
