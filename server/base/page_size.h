#pragma once

#include "absl/status/statusor.h"

namespace stride {

// How many things a page of a List call has, from the request's `page_size`: 0 asks for the
// default. INVALID_ARGUMENT, field `page_size`, when it is negative or above 1000.
absl::StatusOr<int> PageSize(int requested);

}  // namespace stride
