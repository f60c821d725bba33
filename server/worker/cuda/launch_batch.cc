#include "server/worker/cuda/launch_batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/cuda_status.h"

namespace stride::cuda {
namespace {

// What a node is set to; it points into the launch.
struct NodeParameters {
  explicit NodeParameters(EmittedLaunch& launch) : arguments{launch.block.data(), &launch.mark} {
    node.func = launch.kernel->function;
    node.gridDimX = launch.grid.grid[0];
    node.gridDimY = launch.grid.grid[1];
    node.gridDimZ = launch.grid.grid[2];
    node.blockDimX = launch.grid.block[0];
    node.blockDimY = launch.grid.block[1];
    node.blockDimZ = launch.grid.block[2];
    node.sharedMemBytes = launch.grid.dynamic_shared_bytes;
    node.kernelParams = arguments;
  }
  NodeParameters(const NodeParameters&) = delete;
  NodeParameters& operator=(const NodeParameters&) = delete;

  void* arguments[2];
  CUDA_KERNEL_NODE_PARAMS node{};
};

}  // namespace

absl::Status LaunchBatch::Launch(absl::Span<EmittedLaunch> launches) {
  Chain& chain = chains_[launches.size()];
  if (chain.executable == nullptr) {
    absl::Status made = Make(launches, &chain);
    if (!made.ok()) {
      Destroy(chain);
      return made;
    }
  } else {
    for (size_t i = 0; i < launches.size(); ++i) {
      NodeParameters parameters(launches[i]);
      STRIDE_CUDA_RETURN(driver_.cuGraphExecKernelNodeSetParams(chain.executable, chain.nodes[i],
                                                                &parameters.node),
                         absl::StrCat("preparing `", launches[i].kernel->entry, "` in a batch"));
    }
  }
  STRIDE_CUDA_RETURN(driver_.cuGraphLaunch(chain.executable, stream_), "launching a batch");
  return absl::OkStatus();
}

absl::Status LaunchBatch::Make(absl::Span<EmittedLaunch> launches, Chain* chain) {
  STRIDE_CUDA_RETURN(driver_.cuGraphCreate(&chain->graph, 0), "making a batch's graph");
  for (EmittedLaunch& launch : launches) {
    NodeParameters parameters(launch);
    CUgraphNode node = nullptr;
    const CUgraphNode* before = chain->nodes.empty() ? nullptr : &chain->nodes.back();
    STRIDE_CUDA_RETURN(driver_.cuGraphAddKernelNode(&node, chain->graph, before,
                                                    before == nullptr ? 0 : 1, &parameters.node),
                       absl::StrCat("adding `", launch.kernel->entry, "` to a batch"));
    chain->nodes.push_back(node);
  }
  STRIDE_CUDA_RETURN(driver_.cuGraphInstantiateWithFlags(&chain->executable, chain->graph, 0),
                     "making a batch ready");
  return absl::OkStatus();
}

void LaunchBatch::Forget() {
  for (Chain& chain : chains_) Destroy(chain);
}

void LaunchBatch::Destroy(Chain& chain) {
  // The driver lets one that is running end.
  if (chain.executable != nullptr) driver_.cuGraphExecDestroy(chain.executable);
  if (chain.graph != nullptr) driver_.cuGraphDestroy(chain.graph);
  chain = Chain();
}

}  // namespace stride::cuda
