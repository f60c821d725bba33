#pragma once

#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stride {

// The status of a failed system call, by its errno. A lack of file descriptors, processes or memory
// is RESOURCE_EXHAUSTED (QUEUE_FULL, metadata `resource`) with a retry delay, fit for a client.
// Other errors are as absl::ErrnoToStatus makes them.
absl::Status SystemError(int error, std::string_view doing);

// Whether the error is a shortage of a shared resource, which is not the failed caller's fault.
inline bool IsLack(const absl::Status& status) { return absl::IsResourceExhausted(status); }

// Converts the code of std::system_error, which the constructor of std::thread throws.
absl::Status ThreadError(int error);

// Starts a thread, or returns the machine's error: std::thread alone would throw and end the
// daemon.
template <typename Function>
absl::StatusOr<std::thread> StartThread(Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    return ThreadError(error.code().value());
  }
}

}  // namespace stride
