#include "server/worker/cuda/lower/emitted.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stride::cuda {

namespace {

// Each block of a launch with an end mark increments one counter. Some thousand increments take the
// microseconds of a stream's write.
constexpr uint32_t kMostMarkingBlocks = 2048;

absl::StatusOr<Kernel*> FindEmitted(const Lowering& lowering, KernelModule& module,
                                    const char* entry, const codegen::LaunchShape& shape,
                                    const codegen::LaunchBlock& block, bool takes_mark,
                                    Grid* grid) {
  absl::StatusOr<Kernel*> kernel = module.Find(entry);
  if (!kernel.ok()) return kernel.status();
  const uint64_t bytes = block.size() * sizeof(block[0]);
  const std::vector<Kernel::Slot>& declared = (*kernel)->parameters;
  // The driver reads as many bytes as the kernel declares: a larger number means that code and
  // launch belong to different plans.
  if (declared.size() != (takes_mark ? 2 : 1) || declared[0].size > bytes ||
      (takes_mark && declared[1].size > sizeof(codegen::EndMark))) {
    return absl::InternalError(absl::StrCat(
        "launch of `", entry, "` does not fit its code: ", bytes, " bytes of parameters"));
  }
  std::copy(std::begin(shape.grid), std::end(shape.grid), grid->grid);
  std::copy(std::begin(shape.block), std::end(shape.block), grid->block);
  grid->dynamic_shared_bytes = shape.shared_bytes;
  absl::Status status = CheckGrid(**kernel, *grid, lowering.limits);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return kernel;
}

}  // namespace

absl::Status LaunchEmitted(const Lowering& lowering, KernelModule& module, const char* entry,
                           const codegen::LaunchShape& shape, codegen::LaunchBlock& block) {
  Grid grid;
  auto kernel = FindEmitted(lowering, module, entry, shape, block, /*takes_mark=*/false, &grid);
  if (!kernel.ok()) return kernel.status();
  void* parameters[] = {block.data()};
  return Launch(lowering.driver, lowering.stream, **kernel, grid, absl::MakeSpan(parameters));
}

absl::StatusOr<EmittedLaunch> PrepareEmitted(const Lowering& lowering, KernelModule& module,
                                             const char* entry, const codegen::LaunchShape& shape,
                                             codegen::LaunchBlock block) {
  EmittedLaunch launch;
  auto kernel =
      FindEmitted(lowering, module, entry, shape, block, /*takes_mark=*/true, &launch.grid);
  if (!kernel.ok()) return kernel.status();
  launch.kernel = *kernel;
  launch.block = std::move(block);
  const double blocks = static_cast<double>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  if (lowering.end != nullptr && blocks <= kMostMarkingBlocks) launch.mark = lowering.end->mark;
  return launch;
}

absl::Status LaunchPrepared(const Driver& driver, CUstream stream, EmittedLaunch& launch) {
  void* parameters[] = {launch.block.data(), &launch.mark};
  return Launch(driver, stream, *launch.kernel, launch.grid, absl::MakeSpan(parameters));
}

}  // namespace stride::cuda
