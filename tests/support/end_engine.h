#pragma once

#include "server/base/surroundings.h"
#include "server/scheduler/engine.h"
#include "tests/support/fake_broker.h"

namespace stride::testing {

// Shuts the broker down, again and again, since a worker that was being started comes after the
// first time. Whether the engine has nothing left then.
inline bool EndEngine(FakeBroker& broker, scheduler::Engine& engine) {
  bool ended = false;
  for (int tries = 0; tries < 100 && !ended; ++tries) {
    broker.Shutdown();
    ended = engine.Drain(Now() + absl::Milliseconds(200));
  }
  return ended;
}

}  // namespace stride::testing
