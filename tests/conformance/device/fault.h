#pragma once

#include <string>

namespace stride::conformance {

// The life of a process whose third task is `kind` ("address", "assert", "trap", "behind_product":
// the first two are long products, or "function": a client's, in one packet with the others): the
// first and second succeed, the third faults, a fourth waits behind it. Ends by the fault;
// returning means that there was none. Called by main for --fault-child=KIND, with the status page
// and the pipe for Fatal inherited as descriptors 3 and 4.
int RunFaultChild(const std::string& kind);

}  // namespace stride::conformance
