#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "server/worker/cuda/driver/driver.h"

// One owner type for each kind of driver handle. All are movable. Destruction ignores errors, since
// after a fault every call fails and the process is about to end. The Driver must outlive them.
namespace stride::cuda {

// The device's primary context, current on the thread that retained it. Other threads call
// MakeCurrent.
class Context {
 public:
  static absl::StatusOr<Context> Retain(const Driver& driver, CUdevice device);
  Context() = default;
  Context(Context&& other) noexcept { *this = std::move(other); }
  Context& operator=(Context&& other) noexcept;
  ~Context();

  absl::Status MakeCurrent() const;

 private:
  const Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// A driver handle, or null, destroyed by `kDestroy` of the driver.
template <typename T, auto kDestroy>
class Handle {
 public:
  Handle() = default;
  Handle(const Driver& driver, T handle) : driver_(&driver), handle_(handle) {}
  Handle(Handle&& other) noexcept { *this = std::move(other); }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) (driver_->*kDestroy)(handle_);
  }

  T get() const { return handle_; }

 protected:
  const Driver& driver() const { return *driver_; }  // requires a handle that is not null

 private:
  const Driver* driver_ = nullptr;
  T handle_ = nullptr;
};

// A stream that does not wait for the default stream.
class Stream : public Handle<CUstream, &Driver::cuStreamDestroy> {
 public:
  static absl::StatusOr<Stream> Create(const Driver& driver);
  using Handle::Handle;
};

// Records a stream's progress; without timing.
class Event : public Handle<CUevent, &Driver::cuEventDestroy> {
 public:
  static absl::StatusOr<Event> Create(const Driver& driver);
  using Handle::Handle;
};

// A loaded module.
class Module : public Handle<CUmodule, &Driver::cuModuleUnload> {
 public:
  // `image` is a cubin, a fatbin or PTX; PTX must end in a zero byte. INVALID_ARGUMENT with the
  // driver's message when the device cannot run it.
  static absl::StatusOr<Module> Load(const Driver& driver, const void* image);
  using Handle::Handle;

  absl::StatusOr<CUfunction> Function(const char* symbol) const;
  struct Variable {
    CUdeviceptr address = 0;
    size_t size = 0;
  };
  // NOT_FOUND when there is none.
  absl::StatusOr<Variable> Global(const char* symbol) const;
};

// Launches and their dependencies, from which executables are created.
class DriverGraph : public Handle<CUgraph, &Driver::cuGraphDestroy> {
 public:
  // An empty one.
  static absl::StatusOr<DriverGraph> Create(const Driver& driver);
  // Ends the stream's capture, also on error, and returns the captured launches.
  static absl::StatusOr<DriverGraph> EndCapture(const Driver& driver, CUstream stream);
  using Handle::Handle;
};

// An executable graph. It may be destroyed while it runs: the driver lets it end.
class GraphExecutable : public Handle<CUgraphExec, &Driver::cuGraphExecDestroy> {
 public:
  static absl::StatusOr<GraphExecutable> Create(const Driver& driver, const DriverGraph& graph);
  using Handle::Handle;

  // Changes it to an executable of this graph. False: the graphs differ by more than the driver can
  // change, or there is no executable yet.
  bool Update(const DriverGraph& graph);
};

// Host memory pinned for DMA and mapped for the device.
class PinnedRegion {
 public:
  static absl::StatusOr<PinnedRegion> Register(const Driver& driver, void* data, uint64_t size);
  PinnedRegion() = default;
  PinnedRegion(PinnedRegion&& other) noexcept { *this = std::move(other); }
  PinnedRegion& operator=(PinnedRegion&& other) noexcept;
  ~PinnedRegion();

  // Device address of the region's first byte.
  CUdeviceptr device_address() const { return address_; }

 private:
  const Driver* driver_ = nullptr;
  void* data_ = nullptr;
  CUdeviceptr address_ = 0;
};

}  // namespace stride::cuda
