// The reply of a compromised compiler: the status, and the kernels to whose parameters launches are
// bound.

#include <cstdint>
#include <vector>

#include "server/ops/plan.h"
#include "server/wire/status.h"
#include "server/wire/worker.pb.h"
#include "tests/fuzz/driver/proto_mutator.h"
#include "tests/fuzz/driver/require.h"

namespace {

stride::v1::KernelLaunch Launch(int num_arguments) {
  stride::v1::KernelLaunch launch;
  launch.set_entry("k");
  for (int i = 0; i < num_arguments; ++i) {
    stride::v1::KernelArgument* argument = launch.add_arguments();
    switch (i % 4) {
      case 0:
        argument->mutable_array()->set_handle(1);
        break;
      case 1:
        argument->mutable_scalar()->set_int_value(-3);
        break;
      case 2:
        argument->set_raw("12345678");
        break;
      case 3:
        argument->mutable_scalar()->set_float_value(1.5);
    }
  }
  return launch;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  stride::wire::CompileReply reply;
  return stride::fuzz::MutateSerialized(&reply, bytes, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  namespace ops = stride::ops;
  stride::wire::CompileReply reply;
  if (!reply.ParseFromArray(bytes, static_cast<int>(size))) return 0;
  absl::Status status = stride::wire::ToStatus(reply.status());
  stride::fuzz::Require(status.ok() == (reply.status().code() == 0), "an error that became none");
  for (const auto& kernel : reply.description().kernels()) {
    stride::v1::KernelLaunch launch = Launch(kernel.parameters_size());
    std::vector<ops::Input> inputs((kernel.parameters_size() + 3) / 4,
                                   stride::Contiguous(stride::DType::kFloat32, {8}));
    stride::wire::Task task;
    task.mutable_kernel();
    absl::Status bound = ops::BindKernelArguments(launch, inputs, kernel, &task);
    for (int index : ops::WrittenOperands(launch, kernel)) {
      stride::fuzz::Require(index >= 0 && static_cast<size_t>(index) < inputs.size(),
                            "writes an operand that there is not");
    }
    if (bound.ok()) {
      std::vector<ops::Location> slots(inputs.size(), {.arena = 1, .offset = 64});
      ops::Bind(&task, slots);
    }
  }
  return 0;
}
