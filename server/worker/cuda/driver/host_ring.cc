#include "server/worker/cuda/driver/host_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr uint64_t kAlignment = 64;

}  // namespace

HostRing::~HostRing() {
  region_ = PinnedRegion();
  if (memory_ != nullptr) munmap(memory_, kBytes);
}

absl::Status HostRing::Start() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "reserving memory for values");
  absl::StatusOr<PinnedRegion> region = PinnedRegion::Register(driver_, memory, kBytes);
  if (!region.ok()) {
    munmap(memory, kBytes);
    return region.status();
  }
  region_ = *std::move(region);
  memory_ = static_cast<std::byte*>(memory);
  return absl::OkStatus();
}

absl::Status HostRing::Copy(CUdeviceptr to, const void* bytes, uint64_t size) {
  if (memory_ == nullptr) {
    if (absl::Status status = Start(); !status.ok()) return status;
  }
  for (uint64_t at = 0; at < size;) {
    if (used_ == kBytes) {
      STRIDE_CUDA_RETURN(driver_.cuStreamSynchronize(stream_), "waiting for values to be copied");
      used_ = 0;
    }
    const uint64_t part = std::min(size - at, kBytes - used_);
    std::memcpy(memory_ + used_, static_cast<const std::byte*>(bytes) + at, part);
    STRIDE_CUDA_RETURN(driver_.cuMemcpyHtoDAsync(to + at, memory_ + used_, part, stream_),
                       "copying a value");
    used_ = std::min((used_ + part + kAlignment - 1) / kAlignment * kAlignment, kBytes);
    at += part;
  }
  return absl::OkStatus();
}

}  // namespace stride::cuda
