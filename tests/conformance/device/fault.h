#pragma once

#include <string>

namespace stride::conformance {

// Runs a process whose third task is `kind`: "address", "assert", "trap", "after_product" (the
// first two tasks are long products), or "function" (a client's, in one packet with the others).
// The first and second task succeed, the third faults, a fourth is queued after it. The process
// ends by the fault; a return means that none occurred. main calls this for --fault-child=KIND,
// with the status page and the pipe for Fatal as descriptors 3 and 4.
int RunFaultChild(const std::string& kind);

}  // namespace stride::conformance
