#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {

// Writes the marks of a stream's tasks on a side stream, after an event. A stream that writes a
// mark itself stalls for 2 us (H100), a twentieth of a product of 1000 x 1000; with the event it
// continues at once. So the next task may have begun before a mark is written. Use it only for
// tasks that cannot fault, and call Join before all others: marks then stay in order, and identify
// the task that a fault hit. One thread at a time.
class SideMarks {
 public:
  // Marks of the tasks of `stream`, written to `word`. Both must outlive this object, as must the
  // driver.
  static absl::StatusOr<SideMarks> Create(const Driver& driver, CUstream stream, CUdeviceptr word);

  // Writes `mark` once all work enqueued so far has ended.
  CUresult Write(uint32_t mark);
  // The last mark passed to Write since Join.
  std::optional<uint32_t> last() const { return last_; }
  // Later work on the stream begins once all marks are written. Requires last().
  CUresult Join();

 private:
  SideMarks(const Driver& driver, CUstream stream, CUdeviceptr word, Stream beside, Event ended,
            Event written);

  const Driver* driver_;
  CUstream stream_;
  CUdeviceptr word_;
  Stream beside_;
  Event ended_, written_;  // each wait is for the preceding record
  std::optional<uint32_t> last_;
};

}  // namespace stride::cuda
