#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  auto client = context.Connect();
  if (!client) return client.error();
  UploadingSource source(context, **client);
  auto kernel = BuildKernel(context.line().positionals(), context.line(), source);
  if (!kernel) return kernel.error();
  auto computed = Compute(context, **client, kernel->operation);
  if (!computed) return computed.error();
  std::vector<Array> results;
  auto next = computed->arrays.begin();
  for (auto& result : kernel->results)
    results.push_back(result ? std::move(*result) : std::move(*next++));
  return Emit(context, **client, results, computed->timeline, source.upload_time());
}

}  // namespace

const Command& KernelCommand() {
  static const Command kCommand = {
      .name = "kernel",
      .summary = "launch a CUDA C++ kernel (or PTX, or a cubin)",
      .usage = "FILE --entry NAME --grid N --block N ARGUMENT...",
      .details =
          "ARGUMENTs stand for the kernel's parameters, in order:\n"
          "  a.npy, @NAME          an array, passed as a pointer; its type must be the pointer's\n"
          "  4096, 4096:int32      a number\n"
          "  out:int32[4096]       a new array of zeros, which becomes a result\n"
          "  inout:a.npy           an array that the kernel changes, which becomes a result",
      .options = JoinOptions({ResultOptions(), KernelOptionSpecs()}),
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
