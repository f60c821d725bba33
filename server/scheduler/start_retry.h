#pragma once

#include <optional>

#include "absl/time/time.h"

namespace stride::scheduler {

// When to start a worker again of which `tries` have died while they started, over `trying` so far:
// after this pause. None: the device is given up. Only a device whose workers always die is: so it
// takes some tries and some time, and a burst of kills from outside costs no work.
std::optional<absl::Duration> PauseBeforeNextStart(int tries, absl::Duration trying,
                                                   absl::Duration patience);

}  // namespace stride::scheduler
