#pragma once

#include <optional>

#include "absl/time/time.h"

namespace stride::engine {

// The pause before the next start of a worker, after `tries` starts have died during `trying`.
// None: no further start. That takes several tries and some time, so that a burst of kills from
// outside fails no work.
std::optional<absl::Duration> PauseBeforeNextStart(int tries, absl::Duration trying,
                                                   absl::Duration patience);

}  // namespace stride::engine
