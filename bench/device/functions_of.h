// Libraries of the CUDA toolkit, opened at run time.
#pragma once

#include <string>

#include "bench/device/check.h"
#include "server/worker/cuda/driver/dynamic_library.h"

namespace stride::bench {

// Ends the process when the library has no such symbol.
template <typename Function>
void Find(const cuda::DynamicLibrary& library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(library.Find(name));
  if (*function == nullptr) Die(std::string("no function ") + name + " in its library");
}

// For libraries whose status of success is 0.
template <typename Status>
void CheckLibrary(Status status, const char* library, const char* doing) {
  if (static_cast<int>(status) == 0) return;
  Die(std::string(library) + " error " + std::to_string(static_cast<int>(status)) + " while " +
      doing);
}

}  // namespace stride::bench
