// A kind of operation for a test: twice its input. This file and a row in a table are all of it.
// Its message is a ProgramCall, because the oneof of the protocol has no field for tests.
#include "server/ops/operation_kind.h"

namespace stride::ops {
namespace {

absl::StatusOr<Plan> PlanDoubled(const v1::ProgramCall&, Inputs inputs,
                                 absl::Span<const Input> existing, const FunctionTable* functions) {
  v1::Ufunc sum;
  sum.set_function("add");
  sum.add_inputs()->set_handle(1);
  sum.add_inputs()->set_handle(1);
  return PlanUfunc(sum, {{inputs[0], inputs[0]}}, existing, functions);
}

}  // namespace

extern const OperationKind kDoubledKind;
const OperationKind kDoubledKind = {
    .name = "program_call",
    .label = "doubled",
    .operands = [](const v1::Operation& o,
                   OperandList& list) { list.AddEach(o.program_call().inputs()); },
    .plan = PlanBy<&v1::Operation::program_call, PlanDoubled>,
    .rules = {OneResult, WholeKey, BatchElementwise, DivideElementwise},
    .lists = Bounded<&v1::Operation::program_call, 1, &v1::ProgramCall::inputs_size>,
};

}  // namespace stride::ops
