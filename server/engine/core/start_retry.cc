#include "server/engine/core/start_retry.h"

#include <algorithm>

namespace stride::engine {
namespace {

constexpr int kMinTries = 4;
constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

std::optional<absl::Duration> PauseBeforeNextStart(int tries, absl::Duration trying,
                                                   absl::Duration patience) {
  if (tries >= kMinTries && trying >= patience) return std::nullopt;
  absl::Duration pause = kFirstPause;
  for (int i = 1; i < tries && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

}  // namespace stride::engine
