#pragma once

#include <string>

namespace stride {

// `length` characters of [0-9a-z] from the kernel's random source: unguessable names for things
// that clients did not name.
std::string RandomId(int length);

}  // namespace stride
