// Polls for an answer before sleeping until it comes.
#pragma once

#include <functional>

namespace stride::internal {

// Polls `done` until it returns true, for about the time of a small job on a device; returns its
// last answer. Waking a thread takes about 10 us, a tenth of such a job's round trip. Polls only
// with 8 processors or more, of which at most a quarter poll at once; otherwise returns false. Any
// thread.
bool Watch(const std::function<bool()>& done);

}  // namespace stride::internal
