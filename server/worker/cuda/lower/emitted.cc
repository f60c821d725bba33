#include "server/worker/cuda/lower/emitted.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace stride::cuda {

absl::Status LaunchEmitted(const Lowering& lowering, KernelModule& module, const char* entry,
                           const codegen::LaunchShape& shape, codegen::LaunchBlock& block) {
  absl::StatusOr<Kernel*> kernel = module.Find(entry);
  if (!kernel.ok()) return kernel.status();
  const uint64_t bytes = block.size() * sizeof(block[0]);
  // The driver reads as many bytes as the kernel declares: more than there are would mean code and
  // launch of different plans.
  if ((*kernel)->parameters.size() != 1 || (*kernel)->parameters[0].size > bytes) {
    return absl::InternalError(absl::StrCat(
        "launch of `", entry, "` does not fit its code: ", bytes, " bytes of parameters"));
  }
  Grid grid;
  std::copy(std::begin(shape.grid), std::end(shape.grid), grid.grid);
  std::copy(std::begin(shape.block), std::end(shape.block), grid.block);
  if (absl::Status status = CheckGrid(**kernel, grid, lowering.limits); !status.ok()) {
    return absl::InternalError(std::string(status.message()));
  }
  void* parameters[] = {block.data()};
  return Launch(lowering.driver, lowering.stream, **kernel, grid, absl::MakeSpan(parameters));
}

}  // namespace stride::cuda
