#include "server/worker/cuda/driver/handles.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {

absl::StatusOr<Context> Context::Retain(const Driver& driver, CUdevice device) {
  Context context;
  STRIDE_CUDA_RETURN(driver.cuDevicePrimaryCtxRetain(&context.context_, device),
                     "making the device context");
  context.driver_ = &driver;
  context.device_ = device;
  if (absl::Status status = context.MakeCurrent(); !status.ok()) return status;
  return context;
}

Context& Context::operator=(Context&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(device_, other.device_);
  std::swap(context_, other.context_);
  return *this;
}

Context::~Context() {
  if (driver_ != nullptr) driver_->cuDevicePrimaryCtxRelease(device_);
}

absl::Status Context::MakeCurrent() const {
  return ToStatus(driver_->cuCtxSetCurrent(context_), "entering the device context");
}

absl::StatusOr<Stream> Stream::Create(const Driver& driver) {
  CUstream stream = nullptr;
  STRIDE_CUDA_RETURN(driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
                     "making a stream");
  return Stream(driver, stream);
}

absl::StatusOr<Event> Event::Create(const Driver& driver) {
  CUevent event = nullptr;
  STRIDE_CUDA_RETURN(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "making an event");
  return Event(driver, event);
}

absl::StatusOr<Module> Module::Load(const Driver& driver, const void* image) {
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  CUmodule module = nullptr;
  CUresult result = driver.cuModuleLoadDataEx(&module, image, 2, options, values);
  if (result != CUDA_SUCCESS) {
    absl::Status status = ToStatus(result, "loading a module");
    if (log[0] == '\0') return status;
    return absl::Status(status.code(),
                        absl::StrCat(std::string(status.message()), ": ", std::string(log)));
  }
  return Module(driver, module);
}

absl::StatusOr<Module::Variable> Module::Global(const char* symbol) const {
  Variable variable;
  const CUresult result =
      driver().cuModuleGetGlobal(&variable.address, &variable.size, get(), symbol);
  if (result == CUDA_ERROR_NOT_FOUND) {
    return absl::NotFoundError(absl::StrCat("no variable `", symbol, "` in the module"));
  }
  STRIDE_CUDA_RETURN(result, "finding a variable");
  return variable;
}

absl::StatusOr<CUfunction> Module::Function(const char* symbol) const {
  CUfunction function = nullptr;
  STRIDE_CUDA_RETURN(driver().cuModuleGetFunction(&function, get(), symbol),
                     absl::StrCat("looking for kernel `", symbol, "`"));
  return function;
}

absl::StatusOr<DriverGraph> DriverGraph::Create(const Driver& driver) {
  CUgraph graph = nullptr;
  STRIDE_CUDA_RETURN(driver.cuGraphCreate(&graph, 0), "making a graph");
  return DriverGraph(driver, graph);
}

absl::StatusOr<DriverGraph> DriverGraph::EndCapture(const Driver& driver, CUstream stream) {
  CUgraph graph = nullptr;
  const CUresult result = driver.cuStreamEndCapture(stream, &graph);
  DriverGraph captured(driver, graph);
  STRIDE_CUDA_RETURN(result, "capturing steps");
  if (graph == nullptr) return absl::InternalError("nothing was captured");
  return captured;
}

absl::StatusOr<GraphExecutable> GraphExecutable::Create(const Driver& driver,
                                                        const DriverGraph& graph) {
  CUgraphExec executable = nullptr;
  STRIDE_CUDA_RETURN(driver.cuGraphInstantiateWithFlags(&executable, graph.get(), 0),
                     "making a graph ready");
  return GraphExecutable(driver, executable);
}

bool GraphExecutable::Update(const DriverGraph& graph) {
  if (get() == nullptr) return false;
  CUgraphExecUpdateResultInfo info{};
  return driver().cuGraphExecUpdate(get(), graph.get(), &info) == CUDA_SUCCESS;
}

absl::StatusOr<PinnedRegion> PinnedRegion::Register(const Driver& driver, void* data,
                                                    uint64_t size) {
  STRIDE_CUDA_RETURN(driver.cuMemHostRegister(
                         data, size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
                     "pinning host memory");
  PinnedRegion region;
  region.driver_ = &driver;
  region.data_ = data;
  STRIDE_CUDA_RETURN(driver.cuMemHostGetDevicePointer(&region.address_, data, 0),
                     "mapping host memory for the device");
  return region;
}

PinnedRegion& PinnedRegion::operator=(PinnedRegion&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(data_, other.data_);
  std::swap(address_, other.address_);
  return *this;
}

PinnedRegion::~PinnedRegion() {
  if (driver_ != nullptr) driver_->cuMemHostUnregister(data_);
}

}  // namespace stride::cuda
