#pragma once

#include "server/base/environment.h"
#include "server/engine/engine.h"
#include "tests/support/fake_broker.h"

namespace stride::testing {

// Shuts the broker down repeatedly, since a worker that was starting may appear after the first
// time. Returns whether the engine has nothing left then.
inline bool EndEngine(FakeBroker& broker, engine::Engine& engine) {
  bool ended = false;
  for (int tries = 0; tries < 100 && !ended; ++tries) {
    broker.Shutdown();
    ended = engine.Drain(Now() + absl::Milliseconds(200));
  }
  return ended;
}

}  // namespace stride::testing
