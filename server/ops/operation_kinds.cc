#include "server/ops/operation_kinds.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "server/base/error.h"
#include "server/ops/operation_kind.h"

namespace stride::ops {

// A new field of the oneof has a row, or this does not compile or operation_kinds_test fails.
const KindTable& Kinds() {
#define STRIDE_ROW(name) {v1::Operation::k##name, &k##name##Kind},
  static constexpr KindTable kTable = {STRIDE_OPERATION_KINDS(STRIDE_ROW)};
#undef STRIDE_ROW
  return kTable;
}

const OperationKind kNoKind = {
    .name = "operation",
    .operands = [](const v1::Operation&, OperandList&) {},
    .plan = [](const v1::Operation&, Inputs, absl::Span<const Input>,
               const FunctionTable*) -> absl::StatusOr<Plan> {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                          "the operation is empty; set one of its kinds");
    },
    .rules = {ListedResults, NoKey, NoBatching, Undivided},
};

int OneResult(const v1::Operation&, Inputs, const FunctionTable*) { return 1; }
int ListedResults(const v1::Operation& operation, Inputs, const FunctionTable*) {
  return operation.outputs_size();
}

bool NoKey(const OperationView&, const TenantId&, KeyWriter&) { return false; }

bool WholeKey(const OperationView& operation, const TenantId&, KeyWriter& key) {
  if (operation->ByteSizeLong() > PlanKey::kMaxBytes) return false;
  v1::Operation kept = *operation;
  kept.clear_outputs();
  kept.clear_device();
  kept.clear_priority();
  OperandList operands;
  operation.kind().operands(kept, operands);
  for (const v1::Operand* operand : operands) {
    // An operand of `kept`, which is not constant.
    if (!operand->has_scalar()) const_cast<v1::Operand*>(operand)->Clear();
  }
  key.AddMessage(kept);
  return true;
}

PlanKey::PlanKey(const TenantId& tenant, const OperationView& operation,
                 absl::Span<const ArrayInfo* const> inputs,
                 absl::Span<const ArrayInfo* const> existing) {
  KeyWriter key(this);
  key.Add(operation->kind_case());
  if (!operation.kind().rules.key(operation, tenant, key)) return;
  key.AddArrays(inputs);
  key.AddArrays(existing);
  key.End();
}

std::string FunctionLabel(std::string_view function) {
  return absl::AsciiStrToLower(absl::StripPrefix({function.data(), function.size()}, "FUNCTION_"));
}

}  // namespace stride::ops
