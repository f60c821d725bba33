// Runs one function per range at once and gives back the first error.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "client/cpp/src/bulk.h"

namespace stride::internal {

// `move(i, range, options)` runs on a thread of its own for each range but the last, which runs
// here. The first failure cancels the others: part of an array is of no use. The caller's
// cancellation is passed on.
Result<void> RunRanges(const std::vector<Range>& ranges, const TransferOptions& options,
                       const std::function<Result<void>(int, Range, const TransferOptions&)>& move);

}  // namespace stride::internal
