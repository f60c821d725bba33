#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/client_function.h"
#include "server/ops/plan.h"
#include "stride/v1/program_service.pb.h"

// Programs: graphs of operations whose handles are numbers of the program's own.
namespace stride::ops {

struct ProgramPlan;

// One task of a replay, or a view, or a loop or a branch. A worker may capture runs of them as a
// graph of the device's own: nothing between two steps depends on the daemon.
struct ProgramStep {
  v1::Operation operation;        // for its name; of several that became one, the last
  std::vector<uint64_t> inputs;   // handles, in the order of the plan's slots; 0: a scalar
  std::vector<uint64_t> outputs;  // handles
  std::vector<bool> existing;     // of outputs: written in place
  // Not set: copies are needed around it, which are planned when it runs; or it has bodies.
  std::optional<Plan> plan;
  // A loop's body, or a branch's bodies, for the inputs that each gets.
  std::vector<std::shared_ptr<ProgramPlan>> bodies;
  std::vector<ArrayInfo> results;  // of a step with bodies
};

// A program as it runs for inputs of one kind: dtypes, shapes and layouts.
struct ProgramPlan {
  std::vector<ProgramStep> steps;
  std::vector<ArrayInfo> inputs;
  std::vector<uint64_t> input_handles;
  std::vector<ArrayInfo> outputs;        // of the program
  std::vector<uint64_t> output_handles;  // which they are among the steps'
};

constexpr int kMaxProgramOperations = 500;
// With those of all bodies, and how deep bodies lie within each other.
constexpr int kMaxNestedOperations = 2000;
constexpr int kMaxBodyDepth = 8;

// The operation, and each of the bodies within it.
void ForEachOperation(const v1::Operation& operation,
                      absl::FunctionRef<void(const v1::Operation&)> visit);
int NumOperations(const v1::Program& program);

// Whether its handles make sense: whatever it is called with. Field paths within the Program.
absl::Status CheckProgram(const v1::Program& program);

// Plans every operation for these inputs, and makes one loop of elementwise operations whose result
// only another of the same shape reads. The program is checked already. Errors are the operations',
// with paths within the Program.
absl::StatusOr<ProgramPlan> PlanProgram(const v1::Program& program,
                                        absl::Span<const ArrayInfo> inputs,
                                        const FunctionTable* functions);

}  // namespace stride::ops
