#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/bind.h"
#include "server/ops/operation_view.h"
#include "server/store/array_info.h"
#include "server/wire/plan.pb.h"
#include "server/wire/worker.pb.h"
#include "stride/v1/operation.pb.h"

// From a client's operation to a plan: typing, broadcasting, shape rules, fusion. Pure functions of
// their arguments; any thread.
namespace stride::ops {

// Input i of the operation: the array, or nullopt when the operand is a scalar.
using Input = std::optional<ArrayInfo>;

class FunctionTable;

struct Plan {
  // Descriptions of the results, C-contiguous at offset 0, or, where an existing output was given,
  // that output's own description.
  std::vector<ArrayInfo> outputs;
  // A view: outputs[0] lies in input 0's buffer and there is nothing to run.
  bool is_view = false;
  // The code to compile before the task can run. Empty for a kernel given by module name: the
  // caller knows the module.
  std::optional<wire::Code> code;
  // The launch. Operand.arena holds a slot number instead of an arena: input i is slot i (scalars
  // have none but keep their number), output j is slot num_inputs + j; Operand.offset is within the
  // buffer. Bind() replaces both. Module ids are 0 until the caller sets them.
  wire::Task task;
  // New arrays whose kernel expects them zeroed before it runs (kernel outputs), by output index.
  std::vector<int> zeroed_outputs;
  // Copies that the operation needs around it. Set: there is no task, and the operation is to be
  // planned again with inputs of these types (nullopt: as it is), or into a new output that is then
  // copied to the existing one.
  std::vector<std::optional<DType>> converted_inputs;
  bool through_new_output = false;
  // The one kind of device that its code, or a client's function in it, was made for; empty: any.
  std::string required_kind;
  // For estimates: bytes read and written, and arithmetic operations.
  double bytes = 0;
  double flops = 0;
};

// `existing[j]` is set where output j is an existing array that is to be overwritten. Errors are
// InvalidField with paths within the Operation. Kernel arguments are not checked against the kernel
// here, since its signature is known only once it is compiled: see BindKernelArguments.
// `functions`: those of the client's own (client_function.h); may be null.
absl::StatusOr<Plan> PlanOperation(const OperationView& operation, absl::Span<const Input> inputs,
                                   absl::Span<const Input> existing,
                                   const FunctionTable* functions = nullptr);

// Checks a kernel launch's arguments against the compiled kernel's parameters and fills
// task->kernel().arguments (slots as in Plan).
absl::Status BindKernelArguments(const v1::KernelLaunch& launch, absl::Span<const Input> inputs,
                                 const wire::KernelDescription& kernel, wire::Task* task);

// Checks the values of a launch's globals against the module's variables and fills
// task->kernel().globals. A name that the module lacks is UNKNOWN_ENTRY.
absl::Status BindKernelGlobals(const v1::KernelLaunch& launch, absl::Span<const Input> inputs,
                               const wire::ModuleDescription& module, wire::Task* task);

// The kind of device that can run this code: `cuda` for PTX and binaries; empty: any.
std::string RequiredKind(const wire::Code& code);

// UNKNOWN_ENTRY unless each variable that the launch sets is among these of its module.
absl::Status CheckGlobalNames(const v1::KernelLaunch& launch,
                              const google::protobuf::RepeatedPtrField<std::string>& known);

// How many of the launch's operands, the last ones, are the values of globals. They are only read.
int NumGlobalOperands(const v1::KernelLaunch& launch);

// Indices into the operation's operands whose arrays the kernel may write, given its
// parameters (pointers to non-const; all, when unknown).
std::vector<int> WrittenOperands(const v1::KernelLaunch& launch,
                                 const wire::KernelDescription& kernel);

}  // namespace stride::ops
