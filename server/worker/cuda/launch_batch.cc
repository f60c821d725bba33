#include "server/worker/cuda/launch_batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

// Parameters of a node; they point into the launch.
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
  if (chain.executable.get() == nullptr) {
    absl::StatusOr<Chain> made = Make(launches);
    if (!made.ok()) return made.status();
    chain = *std::move(made);
  } else {
    for (size_t i = 0; i < launches.size(); ++i) {
      NodeParameters parameters(launches[i]);
      STRIDE_CUDA_RETURN(driver_.cuGraphExecKernelNodeSetParams(chain.executable.get(),
                                                                chain.nodes[i], &parameters.node),
                         absl::StrCat("preparing `", launches[i].kernel->entry, "` in a batch"));
    }
  }
  STRIDE_CUDA_RETURN(driver_.cuGraphLaunch(chain.executable.get(), stream_), "launching a batch");
  return absl::OkStatus();
}

absl::StatusOr<LaunchBatch::Chain> LaunchBatch::Make(absl::Span<EmittedLaunch> launches) {
  absl::StatusOr<DriverGraph> graph = DriverGraph::Create(driver_);
  if (!graph.ok()) return graph.status();
  std::vector<CUgraphNode> nodes;
  for (EmittedLaunch& launch : launches) {
    NodeParameters parameters(launch);
    CUgraphNode node = nullptr;
    const CUgraphNode* before = nodes.empty() ? nullptr : &nodes.back();
    STRIDE_CUDA_RETURN(driver_.cuGraphAddKernelNode(&node, graph->get(), before,
                                                    before == nullptr ? 0 : 1, &parameters.node),
                       absl::StrCat("adding `", launch.kernel->entry, "` to a batch"));
    nodes.push_back(node);
  }
  absl::StatusOr<GraphExecutable> executable = GraphExecutable::Create(driver_, *graph);
  if (!executable.ok()) return executable.status();
  return Chain{*std::move(graph), *std::move(executable), std::move(nodes)};
}

void LaunchBatch::Forget() {
  for (Chain& chain : chains_) chain = Chain();
}

}  // namespace stride::cuda
