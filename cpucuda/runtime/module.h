// A compiled object, loaded.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace stride::cpucuda {

// Symbols stay valid while the Module lives. Any thread may look up symbols.
class Module {
 public:
  // `fd` is an ELF shared object, such as a sealed memory file; it may be closed afterwards. The
  // process needs to be able to open /proc/self/fd/<fd>.
  static absl::StatusOr<std::unique_ptr<Module>> Load(int fd);
  // Copies the bytes into a sealed memory file first.
  static absl::StatusOr<std::unique_ptr<Module>> LoadBytes(const std::string& object);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Null when there is none. Also finds `__device__` and `__constant__` variables by their mangled
  // name.
  void* Symbol(const std::string& name) const;

 private:
  explicit Module(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace stride::cpucuda
