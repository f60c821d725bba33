#include "server/worker/cuda/handles.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/cuda_status.h"

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
  Stream stream;
  STRIDE_CUDA_RETURN(driver.cuStreamCreateWithPriority(&stream.stream_, CU_STREAM_NON_BLOCKING, 0),
                     "making a stream");
  stream.driver_ = &driver;
  return stream;
}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(stream_, other.stream_);
  return *this;
}

Stream::~Stream() {
  if (driver_ != nullptr) driver_->cuStreamDestroy(stream_);
}

absl::StatusOr<Event> Event::Create(const Driver& driver) {
  Event event;
  STRIDE_CUDA_RETURN(driver.cuEventCreate(&event.event_, CU_EVENT_DISABLE_TIMING),
                     "making an event");
  event.driver_ = &driver;
  return event;
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (driver_ != nullptr) driver_->cuEventDestroy(event_);
}

absl::StatusOr<Module> Module::Load(const Driver& driver, const void* image) {
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  Module module;
  CUresult result = driver.cuModuleLoadDataEx(&module.module_, image, 2, options, values);
  if (result != CUDA_SUCCESS) {
    absl::Status status = ToStatus(result, "loading a module");
    if (log[0] == '\0') return status;
    return absl::Status(status.code(),
                        absl::StrCat(std::string(status.message()), ": ", std::string(log)));
  }
  module.driver_ = &driver;
  return module;
}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(module_, other.module_);
  return *this;
}

Module::~Module() {
  if (driver_ != nullptr) driver_->cuModuleUnload(module_);
}

absl::StatusOr<Module::Variable> Module::Global(const char* symbol) const {
  Variable variable;
  const CUresult result =
      driver_->cuModuleGetGlobal(&variable.address, &variable.size, module_, symbol);
  if (result == CUDA_ERROR_NOT_FOUND) {
    return absl::NotFoundError(absl::StrCat("no variable `", symbol, "` in the module"));
  }
  STRIDE_CUDA_RETURN(result, "finding a variable");
  return variable;
}

absl::StatusOr<CUfunction> Module::Function(const char* symbol) const {
  CUfunction function = nullptr;
  STRIDE_CUDA_RETURN(driver_->cuModuleGetFunction(&function, module_, symbol),
                     absl::StrCat("looking for kernel `", symbol, "`"));
  return function;
}

absl::StatusOr<DriverGraph> DriverGraph::Create(const Driver& driver) {
  DriverGraph graph;
  graph.driver_ = &driver;
  STRIDE_CUDA_RETURN(driver.cuGraphCreate(&graph.graph_, 0), "making a graph");
  return graph;
}

absl::StatusOr<DriverGraph> DriverGraph::EndCapture(const Driver& driver, CUstream stream) {
  DriverGraph graph;
  graph.driver_ = &driver;
  STRIDE_CUDA_RETURN(driver.cuStreamEndCapture(stream, &graph.graph_), "capturing steps");
  if (graph.graph_ == nullptr) return absl::InternalError("nothing was captured");
  return graph;
}

DriverGraph& DriverGraph::operator=(DriverGraph&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(graph_, other.graph_);
  return *this;
}

DriverGraph::~DriverGraph() {
  if (graph_ != nullptr) driver_->cuGraphDestroy(graph_);
}

absl::StatusOr<GraphExecutable> GraphExecutable::Create(const Driver& driver,
                                                        const DriverGraph& graph) {
  GraphExecutable executable;
  STRIDE_CUDA_RETURN(driver.cuGraphInstantiateWithFlags(&executable.executable_, graph.get(), 0),
                     "making a graph ready");
  executable.driver_ = &driver;
  return executable;
}

GraphExecutable& GraphExecutable::operator=(GraphExecutable&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(executable_, other.executable_);
  return *this;
}

GraphExecutable::~GraphExecutable() {
  if (driver_ != nullptr) driver_->cuGraphExecDestroy(executable_);
}

bool GraphExecutable::Update(const DriverGraph& graph) {
  if (driver_ == nullptr) return false;
  CUgraphExecUpdateResultInfo info{};
  return driver_->cuGraphExecUpdate(executable_, graph.get(), &info) == CUDA_SUCCESS;
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
