#include "server/worker/cuda/side_marks.h"

#include <utility>

namespace stride::cuda {

absl::StatusOr<SideMarks> SideMarks::Create(const Driver& driver, CUstream stream,
                                            CUdeviceptr word) {
  absl::StatusOr<Stream> beside = Stream::Create(driver);
  if (!beside.ok()) return beside.status();
  absl::StatusOr<Event> ended = Event::Create(driver), written = Event::Create(driver);
  if (!ended.ok()) return ended.status();
  if (!written.ok()) return written.status();
  return SideMarks(driver, stream, word, *std::move(beside), *std::move(ended),
                   *std::move(written));
}

SideMarks::SideMarks(const Driver& driver, CUstream stream, CUdeviceptr word, Stream beside,
                     Event ended, Event written)
    : driver_(&driver),
      stream_(stream),
      word_(word),
      beside_(std::move(beside)),
      ended_(std::move(ended)),
      written_(std::move(written)) {}

CUresult SideMarks::Write(uint32_t mark) {
  last_ = mark;
  CUresult result = driver_->cuEventRecord(ended_.get(), stream_);
  if (result == CUDA_SUCCESS) result = driver_->cuStreamWaitEvent(beside_.get(), ended_.get(), 0);
  if (result != CUDA_SUCCESS) return result;
  return driver_->cuStreamWriteValue32(beside_.get(), word_, mark, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult SideMarks::Join() {
  last_.reset();
  const CUresult result = driver_->cuEventRecord(written_.get(), beside_.get());
  if (result != CUDA_SUCCESS) return result;
  return driver_->cuStreamWaitEvent(stream_, written_.get(), 0);
}

}  // namespace stride::cuda
