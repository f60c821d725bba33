#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace stride {

// Watching for what is expected within microseconds, in place of sleeping until it comes: a thread
// that sleeps takes 5 to 10 us to wake, as long as a small job takes on a GPU. Only where
// processors are plenty, and the processor is offered to others meanwhile.

// How long to watch: `time`, or zero on a machine with fewer than 8 processors.
absl::Duration SpinTime(absl::Duration time);

// Asks `done` until it says yes or that time is over; its last answer, false where SpinTime is
// zero. At most a quarter of the processors do so at once; for others it asks once. Any thread.
bool SpinUntil(absl::FunctionRef<bool()> done, absl::Duration time);

// Between two looks at what is watched, when so much time has passed.
void SpinPause(absl::Duration passed);

}  // namespace stride
