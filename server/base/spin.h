#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace stride {

// Watching for what is expected within microseconds, in place of sleeping until it comes: a thread
// that sleeps takes 5 to 10 us to wake, as long as a small job takes on a GPU. Only where
// processors are plenty, and the processor is offered to others meanwhile.

// How long a thread watches for what usually follows soon: the next command of a client in a
// request-reply loop, with some 100 us of work on a device in between, or the end of that work.
inline constexpr absl::Duration kWatch = absl::Microseconds(250);

// Whether there are enough for that: 8 or more.
bool ProcessorsArePlenty();

// Asks `done` until it says yes or `time` is over; its last answer. Where they are few it asks
// not at all: false. At most a quarter of the processors do so at once; for others it asks once.
// Any thread.
bool SpinUntil(absl::FunctionRef<bool()> done, absl::Duration time);

}  // namespace stride
