#include "bench/service/pinned_dma.h"

#include <dlfcn.h>

namespace stride::bench {
namespace {

// The part of the driver's interface that is used, with its types on 64-bit machines, since this
// program is also built without CUDA.
using Result = int;
using Address = unsigned long long;

class Driver {
 public:
  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}

  template <typename... Arguments>
  bool Call(const char* name, Arguments... arguments) {
    using Function = Result (*)(Arguments...);
    auto function =
        library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr && function(arguments...) == 0;
  }

 private:
  void* const library_;  // never unloaded: there is no benefit
};

}  // namespace

std::optional<PinnedDma> MeasurePinnedDma(std::span<std::byte> bytes, int rounds) {
  Driver driver;
  int device = 0;
  void* context = nullptr;
  Address memory = 0;
  void* data = bytes.data();
  const size_t size = bytes.size();
  if (!driver.Call("cuInit", 0u) || !driver.Call("cuDeviceGet", &device, 0) ||
      !driver.Call("cuDevicePrimaryCtxRetain", &context, device) ||
      !driver.Call("cuCtxSetCurrent", context) || !driver.Call("cuMemAlloc_v2", &memory, size)) {
    return std::nullopt;
  }
  std::optional<PinnedDma> times;
  if (driver.Call("cuMemHostRegister_v2", data, size, 0u)) {
    times.emplace();
    for (int round = 0; round <= rounds; ++round) {
      const double up = SecondsOf(
          [&] { driver.Call("cuMemcpyHtoD_v2", memory, static_cast<const void*>(data), size); });
      const double down = SecondsOf([&] { driver.Call("cuMemcpyDtoH_v2", data, memory, size); });
      if (round == 0) continue;
      times->up.Add(up);
      times->down.Add(down);
    }
    driver.Call("cuMemHostUnregister", data);
  }
  driver.Call("cuMemFree_v2", memory);
  return times;
}

}  // namespace stride::bench
