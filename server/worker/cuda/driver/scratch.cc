#include "server/worker/cuda/driver/scratch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

// Reductions need a few MiB; the first allocation should be the only one.
constexpr uint64_t kLeastBytes = 4 << 20;
// More than any device has. For larger sizes the driver returns an invalid value error, not out of
// memory.
constexpr uint64_t kMostBytes = uint64_t{1} << 46;

absl::Status NoMemory(uint64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the device has no memory for what the operation works in: ", bytes, " bytes"));
}

}  // namespace

Scratch::~Scratch() {
  if (arrivals_ != 0) driver_.cuMemFreeAsync(arrivals_, stream_);
  if (address_ != 0) driver_.cuMemFreeAsync(address_, stream_);
}

absl::Status Scratch::Start(int num_arrivals) {
  const uint64_t bytes = kCounterBytes * (num_arrivals + 1);
  STRIDE_CUDA_RETURN(driver_.cuMemAllocAsync(&arrivals_, bytes, stream_), "reserving counters");
  STRIDE_CUDA_RETURN(driver_.cuMemsetD8Async(arrivals_, 0, bytes, stream_), "clearing counters");
  arrival_bytes_ = bytes;
  return absl::OkStatus();
}

void Scratch::ClearArrivals() { driver_.cuMemsetD8Async(arrivals_, 0, arrival_bytes_, stream_); }

absl::StatusOr<CUdeviceptr> Scratch::Reserve(uint64_t bytes) {
  peak_ = std::max(peak_, bytes);
  if (bytes <= size_) return address_;
  if (frozen_) return absl::InternalError("a step needs more scratch memory than it did before");
  if (address_ != 0) driver_.cuMemFreeAsync(address_, stream_);
  address_ = 0;
  size_ = 0;
  const uint64_t size = std::max(bytes, kLeastBytes);
  if (bytes > kMostBytes) return NoMemory(bytes);
  CUresult result = driver_.cuMemAllocAsync(&address_, size, stream_);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    // Freed memory is available once the stream has reached the free.
    driver_.cuStreamSynchronize(stream_);
    result = driver_.cuMemAllocAsync(&address_, size, stream_);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return NoMemory(bytes);
  STRIDE_CUDA_RETURN(result, "reserving scratch memory");
  size_ = size;
  return address_;
}

void Scratch::Trim() {
  if (size_ <= kKeptBytes) return;
  driver_.cuMemFreeAsync(address_, stream_);
  address_ = 0;
  size_ = 0;
}

}  // namespace stride::cuda
