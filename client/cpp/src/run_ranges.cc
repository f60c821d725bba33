#include "client/cpp/src/run_ranges.h"

#include <optional>

namespace stride::internal {

Result<void> RunRanges(
    const std::vector<Range>& ranges, const TransferOptions& options,
    const std::function<Result<void>(int, Range, const TransferOptions&)>& move) {
  if (ranges.size() == 1) return move(0, ranges[0], options);
  TransferOptions shared = options;
  shared.cancellation.emplace();
  uint64_t action = 0;
  if (options.cancellation) {
    action = options.cancellation->Add([token = *shared.cancellation] { token.Cancel(); });
  }
  std::mutex mutex;
  std::optional<Error> first;
  auto run = [&](size_t i) {
    auto moved = move(static_cast<int>(i), ranges[i], shared);
    if (moved) return;
    {
      std::lock_guard lock(mutex);
      if (!first) first = moved.error();
    }
    shared.cancellation->Cancel();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i + 1 < ranges.size(); ++i) threads.emplace_back(run, i);
  run(ranges.size() - 1);
  for (auto& thread : threads) thread.join();
  if (options.cancellation) options.cancellation->Remove(action);
  if (first) return *first;
  return {};
}

}  // namespace stride::internal
