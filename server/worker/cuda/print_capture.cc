#include "server/worker/cuda/print_capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/worker/cuda/driver/module_image.h"

namespace stride::cuda {

absl::StatusOr<PrintCapture> PrintCapture::Start() {
  std::fflush(stdout);
  return StartAt(STDOUT_FILENO);
}

absl::StatusOr<PrintCapture> PrintCapture::StartAt(int descriptor) {
  UniqueFd file(memfd_create("stride-printf", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), kFileBytes) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0 ||
      dup2(file.get(), descriptor) < 0) {
    return absl::ErrnoToStatus(errno, "making a file for what kernels print");
  }
  return PrintCapture(std::move(file));
}

PrintedText PrintCapture::Flush(const Driver& driver, CUevent event) {
  // An error means that the device is lost, which the poller detects.
  (void)driver.cuEventSynchronize(event);
  return Take();
}

PrintedText PrintCapture::Take() {
  PrintedText printed;
  // Another thread's driver call may write text too.
  flockfile(stdout);
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  clearerr(stdout);
  // Both descriptors share one position: the number of bytes written.
  const off_t size = std::min<off_t>(lseek(file_.get(), 0, SEEK_CUR), kFileBytes);
  if (size > 0) {
    printed.text.resize(static_cast<size_t>(size));
    const ssize_t got = pread(file_.get(), printed.text.data(), printed.text.size(), 0);
    printed.text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  lseek(file_.get(), 0, SEEK_SET);
  funlockfile(stdout);
  if (!whole) printed.dropped_lines = 1;
  printed.Truncate(kMaxPrintedBytes);
  return printed;
}

bool MayPrint(std::string_view image) {
  return ImageKindOf(image) == ImageKind::kFatbin ||
         image.find("vprintf") != std::string_view::npos;
}

}  // namespace stride::cuda
