#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::testing {

// Emitted CPU texts, compiled together by the compiler of the tests, with <math.h> instead of the
// CPU device's prelude. The library stays loaded for the life of the process.
class NativeModules {
 public:
  static absl::StatusOr<NativeModules> Compile(const std::vector<std::string>& texts);

  // The function `name` (see launch_abi.h) of text `i`.
  void* Find(size_t i, const std::string& name) const;

 private:
  explicit NativeModules(void* library) : library_(library) {}
  void* library_;
};

// Several emitted texts in one: the device headers once, each text in a namespace with its entry
// points renamed `NAME_i`.
std::string JoinTexts(const std::vector<std::string>& texts, bool cuda);

}  // namespace stride::testing
