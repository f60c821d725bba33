// Watching for an answer before sleeping until it comes.
#pragma once

#include <functional>

namespace stride::internal {

// Asks `done` until it says yes, for as long as a small job on a device takes; its last answer. A
// thread that sleeps is woken some 10 us after its answer has come, a tenth of such a job's round
// trip. Only with 8 processors or more, of which at most a quarter watch at once: else false
// without asking. Any thread.
bool Watch(const std::function<bool()>& done);

}  // namespace stride::internal
