#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace stride {

// Polls for an event that is expected within microseconds instead of sleeping: waking a thread
// takes 5 to 10 us, as long as a small job takes on a GPU. Used only on machines with many
// processors; each iteration yields the processor to other threads.

// How long a thread polls for an event that usually follows soon: the next command of a client in a
// request-reply loop with about 100 us of device work in between, or the end of that work.
inline constexpr absl::Duration kWatch = absl::Microseconds(250);

// Whether the machine has enough processors for polling: 8 or more.
bool ProcessorsArePlenty();

// Polls `done` until it returns true or `time` is over; returns its last answer. On a machine with
// few processors it returns false without a poll. At most a quarter of the processors poll at once;
// further threads poll once. Any thread may call it.
bool SpinUntil(absl::FunctionRef<bool()> done, absl::Duration time);

}  // namespace stride
