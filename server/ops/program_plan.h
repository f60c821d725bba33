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

// Programs: graphs of operations with handles local to the program.
namespace stride::ops {

struct ProgramPlan;

// One task of a replay, a view, a loop or a branch. A worker may capture consecutive steps as a
// device graph, since no step depends on the daemon.
struct ProgramStep {
  v1::Operation operation;        // for its name; the last operation of fused steps
  std::vector<uint64_t> inputs;   // handles in the order of the plan's slots; 0: a scalar
  std::vector<uint64_t> outputs;  // handles
  std::vector<bool> existing;     // for each output: written in place
  // Unset for steps with bodies, and for steps that need copies, which are planned at run time.
  std::optional<Plan> plan;
  // The loop's body or the branch's bodies, planned for their inputs.
  std::vector<std::shared_ptr<ProgramPlan>> bodies;
  std::vector<ArrayInfo> results;  // for steps with bodies
};

// A program planned for inputs of these dtypes, shapes and layouts.
struct ProgramPlan {
  std::vector<ProgramStep> steps;
  std::vector<ArrayInfo> inputs;
  std::vector<uint64_t> input_handles;
  std::vector<ArrayInfo> outputs;        // the program's outputs
  std::vector<uint64_t> output_handles;  // handles of the outputs among the steps' outputs
};

constexpr int kMaxProgramOperations = 500;
// Limits of the operations including all bodies, and of the nesting depth of bodies.
constexpr int kMaxNestedOperations = 2000;
constexpr int kMaxBodyDepth = 8;

// Visits the operation and, recursively, the operations of its bodies.
void ForEachOperation(const v1::Operation& operation,
                      absl::FunctionRef<void(const v1::Operation&)> visit);
int NumOperations(const v1::Program& program);

// Checks the handles independently of the inputs. Errors have field paths within the Program.
absl::Status CheckProgram(const v1::Program& program);

// Plans every operation of a checked program for these inputs and fuses elementwise operations
// (FuseSteps). Errors have paths within the Program.
absl::StatusOr<ProgramPlan> PlanProgram(const v1::Program& program,
                                        absl::Span<const ArrayInfo> inputs,
                                        const FunctionTable* functions);

// Plans the bodies of `step`, a loop or a branch, for their inputs, and determines the step's
// results. Errors have paths within the operation.
absl::Status PlanBodies(absl::Span<const Input> inputs, absl::Span<const Input> existing,
                        const FunctionTable* functions, ProgramStep* step);

}  // namespace stride::ops
