#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/ids.h"
#include "server/ops/batcher.h"
#include "server/ops/loop_axes.h"
#include "server/ops/operation_kinds.h"
#include "server/ops/operation_view.h"
#include "server/ops/plan.h"
#include "server/ops/plan_key.h"
#include "server/ops/planners.h"

// The rules of a kind of operation. Each kind's file defines its row.
namespace stride::ops {

// How long the repeated fields of an operation may be. The first that is longer is the error.
class ListLimits {
 public:
  void Check(std::string_view field, int length, int limit);
  // The length of a field of the kind's message, whose name reflection finds.
  void CheckField(const v1::Operation& operation, int length, int limit);
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};
inline constexpr int kMaxListedInputs = 4096;  // no more than an expression has nodes
inline constexpr int kMaxListedOutputs = 64;
inline constexpr int kMaxListedAxes = 64;  // an array has at most 32

// A row: constants and functions without state, any thread. Functions get operations of their kind.
struct OperationKind {
  const char* name;             // the field of the oneof
  const char* label = nullptr;  // how the task's name begins
  // The rest of the task's name, cut at 80 bytes. Neither: the row's name.
  std::string (*detail)(const v1::Operation&) = nullptr;
  void (*operands)(const v1::Operation&, OperandList&) = nullptr;
  // Null: Operation.outputs.
  void (*outputs)(const v1::Operation&, OutputList&) = nullptr;
  absl::StatusOr<Plan> (*plan)(const v1::Operation&, Inputs, absl::Span<const Input> existing,
                               const FunctionTable*) = nullptr;
  // Each kind has all of these; NoKey, NoBatching and Undivided stand for no rule.
  struct Rules {
    int (*num_results)(const v1::Operation&, Inputs, const FunctionTable*) = nullptr;
    // Adds what plans depend on besides arrays. False: plans of this operation are not kept,
    // because they are rare or large, or depend on more.
    bool (*key)(const OperationView&, const TenantId&, KeyWriter&) = nullptr;
    BatchRule batch = nullptr;
    DivideRule divide = nullptr;
  };
  Rules rules;
  // Bounds the message's repeated fields; null: it has none.
  void (*lists)(const v1::Operation&, ListLimits&) = nullptr;
  bool batches_numbers = false;  // `batch` accepts scalar operands
  // Whether a part of an existing output stays as it is; null: never.
  bool (*keeps_output)(const v1::Operation&) = nullptr;
};

// --- rules that several rows name ---

int OneResult(const v1::Operation& operation, Inputs inputs, const FunctionTable* functions);
// As many as the operation lists: the planner checks.
int ListedResults(const v1::Operation& operation, Inputs inputs, const FunctionTable* functions);
// The message without outputs and the arrays that it reads.
bool WholeKey(const OperationView& operation, const TenantId& tenant, KeyWriter& key);
bool NoKey(const OperationView& operation, const TenantId& tenant, KeyWriter& key);

// The inputs of an expression, sorted by name, and the key of the expression with them.
void AddExpressionInputs(const v1::Expression& expression, OperandList& list);
void AddExpressionKey(const v1::Expression& expression, KeyWriter& key);
// FUNCTION_SUM -> sum
std::string FunctionLabel(std::string_view function);

// Operands that are fields of the kind's message, each of them needed.
template <auto kMessage, auto... kFields>
void Reads(const v1::Operation& operation, OperandList& list) {
  const auto& message = (operation.*kMessage)();
  (list.Add((message.*kFields)()), ...);
}
// Repeated fields of the kind's message, by their `_size`.
template <auto kMessage, int kLimit, auto... kSizes>
void Bounded(const v1::Operation& operation, ListLimits& limits) {
  const auto& message = (operation.*kMessage)();
  (limits.CheckField(operation, (message.*kSizes)(), kLimit), ...);
}

// The row's planner from that of the kind's message, which takes (message[, inputs], existing[,
// functions]), where `existing` is that of all outputs or of the one.
template <auto kMessage, auto kPlanner>
absl::StatusOr<Plan> PlanBy(const v1::Operation& operation, Inputs inputs,
                            absl::Span<const Input> existing, const FunctionTable* functions) {
  const auto& message = (operation.*kMessage)();
  using Planner = decltype(kPlanner);
  using Message = decltype(message);
  using All = absl::Span<const Input>;
  if constexpr (std::is_invocable_v<Planner, Message, Inputs, All, const FunctionTable*>) {
    return kPlanner(message, inputs, existing, functions);
  } else if constexpr (std::is_invocable_v<Planner, Message, Inputs, All>) {
    return kPlanner(message, inputs, existing);
  } else {
    const Input output = existing.empty() ? Input() : existing[0];
    if constexpr (std::is_invocable_v<Planner, Message, Inputs, Input, const FunctionTable*>) {
      return kPlanner(message, inputs, output, functions);
    } else if constexpr (std::is_invocable_v<Planner, Message, Inputs, Input>) {
      return kPlanner(message, inputs, output);
    } else {
      return kPlanner(message, output);
    }
  }
}

}  // namespace stride::ops
