#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {

// Writes the marks of a stream's tasks on a stream beside it, behind an event. A stream that writes
// a mark itself stands still for 2 us (H100), a twentieth of a product of 1000 x 1000; with the
// event it goes on at once. So the next task may have begun when a mark is written: that is for
// tasks that cannot fault, and Join comes before all others, so that marks stay in order and tell
// which task a fault hit. One thread at a time.
class SideMarks {
 public:
  // Of the tasks of `stream`, into `word`. Both must outlive this, as must the driver.
  static absl::StatusOr<SideMarks> Create(const Driver& driver, CUstream stream, CUdeviceptr word);

  // Has `mark` written when all that was enqueued so far has ended.
  CUresult Write(uint32_t mark);
  // The last mark that Write was given since Join.
  std::optional<uint32_t> last() const { return last_; }
  // What is enqueued from now on begins when every mark has been written. There is a last one.
  CUresult Join();

 private:
  SideMarks(const Driver& driver, CUstream stream, CUdeviceptr word, Stream beside, Event ended,
            Event written);

  const Driver* driver_;
  CUstream stream_;
  CUdeviceptr word_;
  Stream beside_;
  Event ended_, written_;  // each wait is for the record before it
  std::optional<uint32_t> last_;
};

}  // namespace stride::cuda
