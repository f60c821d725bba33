#include "server/worker/cuda/driver/driver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/dynamic_library.h"

// The argument is macro-expanded first, so that cuMemAlloc becomes "cuMemAlloc_v2" as in cuda.h.
#define STRIDE_SYMBOL(name) #name

namespace stride::cuda {

absl::StatusOr<std::shared_ptr<const Driver>> Driver::Load() {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("NVIDIA driver", {"libcuda.so.1", "libcuda.so"});
  if (!library.ok()) return absl::UnavailableError("no NVIDIA driver");
  auto driver = std::make_shared<Driver>();
  const char* missing = nullptr;
#define STRIDE_RESOLVE(name)                                                                   \
  driver->name = reinterpret_cast<decltype(driver->name)>(library->Find(STRIDE_SYMBOL(name))); \
  if (driver->name == nullptr) missing = STRIDE_SYMBOL(name);
  STRIDE_CUDA_DRIVER_FUNCTIONS(STRIDE_RESOLVE)
#undef STRIDE_RESOLVE
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the NVIDIA driver is too old: CUDA 12.0 or later is needed (no ", missing, ")"));
  }
#define STRIDE_RESOLVE(name) \
  driver->name = reinterpret_cast<decltype(driver->name)>(library->Find(STRIDE_SYMBOL(name)));
  STRIDE_CUDA_OPTIONAL_FUNCTIONS(STRIDE_RESOLVE)
#undef STRIDE_RESOLVE
  if (CUresult result = driver->cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE) return absl::UnavailableError("no NVIDIA device");
    return ToStatus(result, "initializing the NVIDIA driver");
  }
  return driver;
}

}  // namespace stride::cuda
