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
  // Tries each name with the loader's own search (which uses LD_LIBRARY_PATH), then in the usual
  // folders of a CUDA toolkit. UNAVAILABLE, naming `what`, when none opens.
  static absl::StatusOr<DynamicLibrary> Open(std::string_view what,
                                             std::initializer_list<const char*> names);

  // nullptr when there is no such symbol.
  void* Find(const char* symbol) const;

  // The file that the library was loaded from, according to the loader; empty: unknown. `symbol` is
  // any function of the library.
  static std::string PathOf(const void* symbol);

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace stride::cuda
