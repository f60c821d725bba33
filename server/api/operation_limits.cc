#include "server/api/operation_limits.h"

#include <initializer_list>
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

absl::Status Check(std::initializer_list<Count> counts) {
  for (const Count& count : counts) {
    if (count.value <= count.limit) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, count.field,
        absl::StrCat("at most ", count.limit, ", not ", count.value),
        {{"limit", std::to_string(count.limit)}, {"value", std::to_string(count.value)}});
  }
  return absl::OkStatus();
}

absl::Status CheckLaunch(const v1::KernelLaunch& launch) {
  absl::Status status =
      Check({{"kernel_launch.arguments", launch.arguments_size(), kMaxKernelArguments},
             {"kernel_launch.globals", launch.globals_size(), kMaxKernelArguments},
             {"kernel_launch.options", launch.options_size(), kMaxOptions}});
  for (int i = 0; status.ok() && i < launch.arguments_size(); ++i) {
    const int members = launch.arguments(i).aggregate().members_size();
    if (members <= kMaxKernelArguments) continue;
    const std::string field = absl::StrCat("kernel_launch.arguments[", i, "].aggregate.members");
    return Check({{field.c_str(), members, kMaxKernelArguments}});
  }
  return status;
}

// Of the one kind that the operation is.
absl::Status CheckKind(const v1::Operation& operation) {
  switch (operation.kind_case()) {
    case v1::Operation::kUfunc:
      return Check({{"ufunc.inputs", operation.ufunc().inputs_size(), kMaxInputs}});
    case v1::Operation::kExpression:
      return Check({{"expression.inputs", static_cast<int>(operation.expression().inputs().size()),
                     kMaxInputs}});
    case v1::Operation::kReduction:
      return Check(
          {{"reduction.axes", operation.reduction().axes_size(), kMaxAxes},
           {"reduction.more_inputs", operation.reduction().more_inputs_size(), kMaxAxes},
           {"reduction.expression.inputs",
            static_cast<int>(operation.reduction().expression().inputs().size()), kMaxInputs}});
    case v1::Operation::kGather:
      return Check({{"gather.indices", operation.gather().indices_size(), kMaxAxes}});
    case v1::Operation::kScatter:
      return Check({{"scatter.indices", operation.scatter().indices_size(), kMaxAxes}});
    case v1::Operation::kApplyAt:
      return Check({{"apply_at.indices", operation.apply_at().indices_size(), kMaxAxes}});
    case v1::Operation::kGufunc:
      return Check({{"gufunc.inputs", operation.gufunc().inputs_size(), kMaxAxes}});
    case v1::Operation::kProgramCall:
      return Check({{"program_call.inputs", operation.program_call().inputs_size(), kMaxInputs}});
    case v1::Operation::kView:
      return Check({{"view.steps", operation.view().steps_size(), kMaxViewSteps}});
    case v1::Operation::kKernelLaunch:
      return CheckLaunch(operation.kernel_launch());
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::Status CheckCounts(const v1::Operation& operation) {
  absl::Status status = Check({{"outputs", operation.outputs_size(), kMaxOutputs}});
  return status.ok() ? CheckKind(operation) : status;
}

}  // namespace stride::api
