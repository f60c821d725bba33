// Runs one function per range concurrently and returns the first error.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "client/cpp/src/bulk.h"

namespace stride::internal {

// `move(i, range, options)` runs on its own thread for each range but the last, which runs here.
// The first failure cancels the others, since a part of an array is useless. The caller's
// cancellation is passed on.
Result<void> RunRanges(const std::vector<Range>& ranges, const TransferOptions& options,
                       const std::function<Result<void>(int, Range, const TransferOptions&)>& move);

}  // namespace stride::internal
