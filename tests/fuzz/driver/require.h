// Conditions that hold for every input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace stride::fuzz {

// Ends the program, and with it the fuzzer, which then keeps the input.
inline void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace stride::fuzz
