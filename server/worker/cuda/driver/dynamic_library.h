#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stride::cuda {

// A shared library opened at run time. It is never closed: the driver and its companions keep
// threads and exit handlers.
class DynamicLibrary {
 public:
  // Tries each name with the loader's own search (which knows LD_LIBRARY_PATH), then in the folders
  // where a CUDA toolkit is usually installed. UNAVAILABLE, naming `what`, when none opens.
  static absl::StatusOr<DynamicLibrary> Open(std::string_view what,
                                             std::initializer_list<const char*> names);

  // nullptr when there is no such symbol.
  void* Find(const char* symbol) const;

  // The file it was loaded from, as the loader tells; empty when it does not. `symbol` is any
  // function of the library.
  static std::string PathOf(const void* symbol);

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace stride::cuda
