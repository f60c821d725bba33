#include "cpucuda/runtime/launch_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cpucuda/runtime/block_scratch.h"

namespace stride::cpucuda {
namespace {

absl::Status Refuse(const KernelEntry& kernel, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("kernel `", kernel.name, "` cannot be launched: ", why));
}

absl::Status CheckBlock(const KernelEntry& kernel, const Dim3& block) {
  if (block.x == 0 || block.y == 0 || block.z == 0)
    return Refuse(kernel, "a block dimension is zero");
  if (block.x > 1024 || block.y > 1024 || block.z > 64)
    return Refuse(kernel, "a block is at most 1024 x 1024 x 64");
  uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads > kMaxThreadsPerBlock) {
    return Refuse(kernel, absl::StrCat("a block has at most 1024 threads, not ", threads));
  }
  if (threads > kernel.max_threads_per_block) {
    return Refuse(kernel, absl::StrCat("its __launch_bounds__ allow ", kernel.max_threads_per_block,
                                       " threads per block, not ", threads));
  }
  return absl::OkStatus();
}

absl::Status CheckGrid(const KernelEntry& kernel, const Dim3& grid, const Dim3& block) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Refuse(kernel, "a grid dimension is zero");
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return Refuse(kernel, "a grid is at most 2147483647 x 65535 x 65535");
  }
  // Compiled code relies on blockIdx * blockDim + threadIdx not wrapping.
  if (uint64_t{grid.x} * block.x > 0x80000000ull || uint64_t{grid.y} * block.y > 0x80000000ull ||
      uint64_t{grid.z} * block.z > 0x80000000ull) {
    return Refuse(kernel, "grid times block is more than 2^31 threads in one dimension");
  }
  return absl::OkStatus();
}

uint64_t ThreadsOf(const Dim3& block) { return uint64_t{block.x} * block.y * block.z; }

absl::Status CheckCooperative(const KernelEntry& kernel, const LaunchConfig& config) {
  const uint64_t blocks = ThreadsOf(config.grid), limit = MaxCooperativeBlocks(kernel, config);
  if (!config.cooperative || blocks <= limit) return absl::OkStatus();
  return Refuse(kernel, absl::StrCat("a cooperative grid of ", blocks,
                                     " blocks does not fit; of blocks of this size at most ", limit,
                                     " run at once here"));
}

}  // namespace

uint64_t MaxCooperativeBlocks(const KernelEntry& kernel, const LaunchConfig& config) {
  const uint64_t threads = ThreadsOf(config.block);
  const uint64_t bytes = ScratchBytes(kernel.private_bytes_per_thread, threads) +
                         kernel.static_shared_bytes + config.dynamic_shared_bytes;
  return std::min(kMaxCooperativeThreads / threads,
                  kMaxPrivateBytes / std::max<uint64_t>(bytes, 1));
}

absl::Status CheckLaunch(const KernelEntry& kernel, const LaunchConfig& config) {
  if (absl::Status status = CheckBlock(kernel, config.block); !status.ok()) return status;
  if (absl::Status status = CheckGrid(kernel, config.grid, config.block); !status.ok())
    return status;
  uint64_t shared = uint64_t{kernel.static_shared_bytes} + config.dynamic_shared_bytes;
  if (shared > kMaxSharedBytes) {
    return Refuse(kernel, absl::StrCat("it needs ", shared, " bytes of shared memory; a block has ",
                                       kMaxSharedBytes));
  }
  uint64_t threads = uint64_t{config.block.x} * config.block.y * config.block.z;
  uint64_t scratch = ScratchBytes(kernel.private_bytes_per_thread, threads);
  if (scratch > kMaxPrivateBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "kernel `", kernel.name, "` keeps ", scratch, " bytes of private values for a block of ",
        threads, " threads; the limit is ", kMaxPrivateBytes));
  }
  return CheckCooperative(kernel, config);
}

}  // namespace stride::cpucuda
