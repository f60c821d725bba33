#include "server/api/operation_limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

// A ufunc has at most a few, and an expression no more than its nodes.
constexpr int kMaxInputs = 4096;
constexpr int kMaxOutputs = 64;
constexpr int kMaxAxes = 64;  // those of an array are 32
constexpr int kMaxViewSteps = 256;
// CUDA passes at most 32,764 bytes of parameters.
constexpr int kMaxKernelArguments = 4096;
constexpr int kMaxOptions = 256;

struct Count {
  const char* field;
  int value;
  int limit;
};

}  // namespace

absl::Status CheckCounts(const v1::Operation& operation) {
  const Count counts[] = {
      {"outputs", operation.outputs_size(), kMaxOutputs},
      {"ufunc.inputs", operation.ufunc().inputs_size(), kMaxInputs},
      {"expression.inputs", static_cast<int>(operation.expression().inputs().size()), kMaxInputs},
      {"reduction.axes", operation.reduction().axes_size(), kMaxAxes},
      {"gather.indices", operation.gather().indices_size(), kMaxAxes},
      {"scatter.indices", operation.scatter().indices_size(), kMaxAxes},
      {"reduction.more_inputs", operation.reduction().more_inputs_size(), kMaxAxes},
      {"apply_at.indices", operation.apply_at().indices_size(), kMaxAxes},
      {"gufunc.inputs", operation.gufunc().inputs_size(), kMaxAxes},
      {"program_call.inputs", operation.program_call().inputs_size(), kMaxInputs},
      {"view.steps", operation.view().steps_size(), kMaxViewSteps},
      {"kernel_launch.arguments", operation.kernel_launch().arguments_size(), kMaxKernelArguments},
      {"kernel_launch.globals", operation.kernel_launch().globals_size(), kMaxKernelArguments},
      {"kernel_launch.options", operation.kernel_launch().options_size(), kMaxOptions}};
  for (const Count& count : counts) {
    if (count.value <= count.limit) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, count.field,
        absl::StrCat("at most ", count.limit, ", not ", count.value),
        {{"limit", std::to_string(count.limit)}, {"value", std::to_string(count.value)}});
  }
  for (int i = 0; i < operation.kernel_launch().arguments_size(); ++i) {
    const int members = operation.kernel_launch().arguments(i).aggregate().members_size();
    if (members <= kMaxKernelArguments) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT,
        absl::StrCat("kernel_launch.arguments[", i, "].aggregate.members"),
        absl::StrCat("at most ", kMaxKernelArguments, ", not ", members),
        {{"limit", std::to_string(kMaxKernelArguments)}, {"value", std::to_string(members)}});
  }
  return absl::OkStatus();
}

}  // namespace stride::api
