#include "server/worker/runtime/print_budget.h"

#include <algorithm>

namespace stride::worker {

void PrintBudget::Take(PrintedText* printed, SteadyTime now) {
  const double earned = absl::ToDoubleSeconds(now - last_) * kBytesPerSecond;
  bytes_ = std::min(bytes_ + std::max(earned, 0.0), static_cast<double>(kMostBytes));
  last_ = now;
  printed->Truncate(static_cast<size_t>(bytes_));
  bytes_ -= static_cast<double>(printed->text.size());
}

}  // namespace stride::worker
