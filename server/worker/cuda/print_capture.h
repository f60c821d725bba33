#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/printed_text.h"
#include "server/base/unique_fd.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// Captures printf text of kernels. The driver stores it in a buffer on the device (1 MiB; it
// overwrites the oldest text) and writes it to the process's standard output when the host
// synchronizes ("Formatted Output" in the CUDA C++ Programming Guide). Here standard output is a
// memory file of fixed size: a write never blocks, and fails beyond the end.
class PrintCapture {
 public:
  // Bytes of the file. The device's buffer stores arguments, whose text may be longer. RLIMIT_FSIZE
  // of the process must allow this size.
  static constexpr uint64_t kFileBytes = 4 << 20;

  // Redirects the process's standard output permanently. Call once, before any other thread prints.
  static absl::StatusOr<PrintCapture> Start();
  // Like Start, with another descriptor instead of standard output: for tests, which write there.
  static absl::StatusOr<PrintCapture> StartAt(int descriptor);

  // Makes the driver write the text of work before `event`, which must have completed, and returns
  // all text since the last call. It may include the first lines of later work on the same stream.
  PrintedText Flush(const Driver& driver, CUevent event);
  // All text since the last call.
  PrintedText Take();

 private:
  explicit PrintCapture(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

// Whether code may call printf: it has the symbol, or is compressed.
bool MayPrint(std::string_view image);

}  // namespace stride::cuda
