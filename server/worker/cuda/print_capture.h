#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/printed_text.h"
#include "server/base/unique_fd.h"
#include "server/worker/cuda/driver.h"

namespace stride::cuda {

// Text of printf in kernels. The driver keeps it in a buffer on the device (1 MiB, of which it
// overwrites the oldest) and writes it to the process's standard output when the host synchronizes
// ("Formatted Output" in the CUDA C++ Programming Guide). That output is a memory file here, which
// cannot grow: a write never blocks, and one beyond the end fails.
class PrintCapture {
 public:
  // Bytes of the file. The device's buffer holds arguments; their text may be longer. A process
  // that captures must be allowed files of this size (RLIMIT_FSIZE).
  static constexpr uint64_t kFileBytes = 4 << 20;

  // Redirects the process's standard output permanently. Call once, before any other thread prints.
  static absl::StatusOr<PrintCapture> Start();
  // As Start, with another descriptor in place of standard output: for tests, which write there.
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

// Whether code may call printf: its symbol is there, or the code is compressed.
bool MayPrint(std::string_view image);

}  // namespace stride::cuda
