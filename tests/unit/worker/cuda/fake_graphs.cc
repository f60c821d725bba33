#include "tests/unit/worker/cuda/fake_graphs.h"

#include <cstdint>

namespace stride::cuda {
namespace {

FakeGraphs g_fake;

template <typename Handle>
Handle NewHandle() {
  static uintptr_t last = 0;
  return reinterpret_cast<Handle>(++last);
}

template <typename Handle>
CUresult Make(Handle* handle, std::set<Handle>& all) {
  *handle = *all.insert(NewHandle<Handle>()).first;
  return CUDA_SUCCESS;
}

// Objects that were destroyed or never created are an error too, as the driver reports at best.
template <typename Handle>
CUresult Destroy(Handle handle, std::set<Handle>& all) {
  return all.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Use(CUgraphExec executable, bool works, int* count) {
  if (g_fake.executables.count(executable) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (!works) return CUDA_ERROR_NOT_SUPPORTED;
  ++*count;
  return CUDA_SUCCESS;
}

}  // namespace

FakeGraphs& NewFakeGraphs(Driver* driver) {
  g_fake = FakeGraphs();
  *driver = Driver();
  driver->cuStreamCreateWithPriority = [](CUstream* stream, unsigned int, int) {
    *stream = NewHandle<CUstream>();
    return CUDA_SUCCESS;
  };
  driver->cuStreamDestroy = [](CUstream) { return CUDA_SUCCESS; };
  driver->cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) { return CUDA_SUCCESS; };
  driver->cuStreamEndCapture = [](CUstream, CUgraph* graph) { return Make(graph, g_fake.graphs); };
  driver->cuGraphCreate = [](CUgraph* graph, unsigned int) { return Make(graph, g_fake.graphs); };
  driver->cuGraphAddKernelNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t,
                                    const CUDA_KERNEL_NODE_PARAMS*) {
    *node = NewHandle<CUgraphNode>();
    return CUDA_SUCCESS;
  };
  driver->cuGraphDestroy = [](CUgraph graph) { return Destroy(graph, g_fake.graphs); };
  driver->cuGraphInstantiateWithFlags = [](CUgraphExec* executable, CUgraph, unsigned long long) {
    return g_fake.instantiates ? Make(executable, g_fake.executables) : CUDA_ERROR_NOT_SUPPORTED;
  };
  driver->cuGraphExecUpdate = [](CUgraphExec executable, CUgraph, CUgraphExecUpdateResultInfo*) {
    return Use(executable, g_fake.updates, &g_fake.num_updates);
  };
  driver->cuGraphExecKernelNodeSetParams = [](CUgraphExec executable, CUgraphNode,
                                              const CUDA_KERNEL_NODE_PARAMS*) {
    return Use(executable, g_fake.updates, &g_fake.num_updates);
  };
  driver->cuGraphLaunch = [](CUgraphExec executable, CUstream) {
    return Use(executable, g_fake.launches, &g_fake.num_launches);
  };
  driver->cuGraphExecDestroy = [](CUgraphExec executable) {
    return Destroy(executable, g_fake.executables);
  };
  return g_fake;
}

}  // namespace stride::cuda
