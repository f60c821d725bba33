// A failed check ends a benchmark with a message that has the program's name.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stride::bench {

[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

inline void Check(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

template <typename T>
T Expect(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

}  // namespace stride::bench
