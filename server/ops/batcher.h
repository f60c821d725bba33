#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/client_function.h"
#include "server/ops/operation_kinds.h"
#include "server/ops/plan.h"
#include "server/ops/shape.h"
#include "stride/v1/program_service.pb.h"

// How the rules of kinds (OperationKind::batch) make operations of a batch.
namespace stride::ops {

// An array of the batched program, for a handle of the given one.
struct Batched {
  uint64_t handle = 0;
  bool batched = false;  // its first axis is the batch's
  ArrayInfo info;        // with that axis
  // The rank of one element of the batch.
  size_t rank() const { return info.shape.size() - (batched ? 1 : 0); }
  ArrayInfo element() const {
    ArrayInfo element = info;
    if (!batched) return element;
    element.shape.erase(element.shape.begin());
    element.strides.erase(element.strides.begin());
    return element;
  }
};

class Batcher;
// Turns an operation for one element into that for the whole batch: replaces its operands (Replace)
// and changes its fields. A rule that appends all operations itself (SetResult) clears the kind.
using BatchRule = absl::Status (*)(Batcher& batcher, v1::Operation* operation);

// The rule of a kind that has none: UNIMPLEMENTED.
absl::Status NoBatching(Batcher& batcher, v1::Operation* operation);
// Operands broadcast as they would alone. Into a target of the batch one of them is repeated.
absl::Status BatchElementwise(Batcher& batcher, v1::Operation* operation);

class Batcher {
 public:
  // `forced`: handles that have the batch's axis from when they are made, since something of the
  // batch is written into them later.
  Batcher(const v1::Program& program, const FunctionTable* functions, const KindTable& kinds,
          const std::set<uint64_t>& forced);

  absl::StatusOr<v1::Program> Run(absl::Span<const ArrayInfo> inputs);
  // After a Run that failed: one more handle to force.
  std::optional<uint64_t> must_force() const { return must_force_; }

  // --- for rules ---

  int64_t size() const { return *size_; }
  const FunctionTable* functions() const { return functions_; }
  uint64_t NewHandle() { return next_handle_++; }
  // UNIMPLEMENTED: there is no rule for the operation as it is used.
  absl::Status NoRule(const v1::Operation& operation) const;

  // The array that an operand stands for; null: it is a scalar.
  const Batched* Find(const v1::Operand& operand) const;
  bool IsBatched(const v1::Operand& operand) const;
  // By handle of the given program, such as an existing output's.
  const Batched& At(uint64_t handle) const { return known_.at(handle); }
  // The description that a replaced operand has.
  const ArrayInfo& Replaced(const v1::Operand& operand) const { return raw_.at(operand.handle()); }

  // Operands of the operation as it becomes, in the planner's order.
  std::vector<v1::Operand*> OperandsOf(v1::Operation* operation) const;
  // The greatest rank of an element's operands, before any is replaced.
  size_t RankOf(v1::Operation* operation) const;
  // An axis of one element, in the whole.
  absl::StatusOr<int32_t> Shifted(int32_t axis, size_t rank, std::string_view field) const;
  // Gives the message that axis.
  template <typename Message>
  absl::Status SetShifted(Message* message, int32_t axis, size_t rank,
                          std::string_view field) const {
    auto shifted = Shifted(axis, rank, field);
    if (!shifted.ok()) return shifted.status();
    message->set_axis(*shifted);
    return absl::OkStatus();
  }

  // The operand is to be this array of the batched program.
  void Replace(v1::Operand* operand, const Batched& array);
  // For a list whose entries moved: exactly its operands are replaced.
  template <typename List>
  void AllReplaced(List* operands) {
    replaced_.clear();
    for (v1::Operand& operand : *operands) replaced_.push_back(&operand);
  }
  // Gives all operands the greatest rank, or `rank`.
  absl::Status Align(v1::Operation* operation);
  absl::Status Align(v1::Operation* operation, size_t rank);
  // Whether an operand that was replaced has the batch's axis.
  bool IsAligned(const v1::Operand& operand) const { return aligned_.count(operand.handle()) > 0; }

  // Views, and copies where no view is possible.
  absl::StatusOr<Batched> ViewOf(const Batched& array, const v1::View::Step& step);
  // One axis in another place, the others in their order.
  absl::StatusOr<Batched> Moved(const Batched& array, size_t from, size_t to);
  absl::StatusOr<Batched> Reshaped(const Batched& array, const Shape& shape);
  // As Reshaped, by a copy where there is no such view.
  absl::StatusOr<Batched> Reordered(const Batched& array, const Shape& shape);
  // With axes of length one after the batch's, so that one element has `rank` axes and broadcasts
  // as it would alone.
  absl::StatusOr<Batched> WithRank(const Batched& array, size_t rank);
  // With the batch's axis in front.
  absl::StatusOr<Batched> Broadcast(const Batched& array);
  // The numbers of the batch's elements, with `rank` axes of length one after them.
  absl::StatusOr<Batched> Numbers(size_t rank);

  // Appends an operation whose operands have these descriptions. Returns its first output.
  absl::StatusOr<Batched> Emit(v1::Operation operation, const std::vector<ArrayInfo>& arrays,
                               bool batched);
  // Appends an operation of the given program. Operands that no rule replaced refer to the arrays
  // of the same handle.
  absl::Status Finish(v1::Operation& operation, bool batched);
  // Appends it and reshapes its results. Clears the kind.
  absl::Status FinishReshaped(v1::Operation* operation, const std::vector<Shape>& shapes);
  // The array of the batch that a handle of the given program stands for.
  void SetResult(uint64_t handle, Batched array);
  // The view that an existing output is written through.
  void SetTarget(int output, const Batched& array) { targets_[output] = array; }

 private:
  // Puts new handles above those of the program. INVALID_ARGUMENT names a handle that leaves too
  // few.
  absl::Status ReserveHandles();
  absl::Status Reserve(uint64_t handle, absl::FunctionRef<std::string()> field);
  absl::Status AddInput(int number, const ArrayInfo& info);
  absl::Status AddOperation(const v1::Operation& given);
  absl::Status CheckTargets(const v1::Operation& given);
  // Types the operation for one element of the batch, so that rules can rely on the numbers of its
  // operands, indices and outputs.
  absl::Status CheckElement(const OperationView& operation);
  absl::StatusOr<std::vector<ArrayInfo>> ResultsOf(const v1::Operation& operation,
                                                   absl::Span<const Input> inputs,
                                                   absl::Span<const Input> existing) const;
  absl::Status ApplyRule(v1::Operation* operation);
  absl::StatusOr<Batched> Copied(const Batched& array);
  absl::StatusOr<Batched> Repeated(const Batched& array);
  absl::StatusOr<uint64_t> OutputHandle(int number);

  const v1::Program& program_;
  const FunctionTable* const functions_;
  const KindTable& kinds_;
  v1::Program result_;
  std::map<uint64_t, Batched> known_;         // by handle of the given program
  std::map<uint64_t, ArrayInfo> raw_;         // by handle of the batched one
  std::map<uint64_t, uint64_t> base_;         // by a view's handle in the given program
  std::set<uint64_t> aligned_;                // handles of the batched one with the batch's axis
  std::vector<const v1::Operand*> replaced_;  // operands of the current operation
  std::map<int, Batched> targets_;            // its outputs that are views
  const std::set<uint64_t>& forced_;
  std::optional<uint64_t> must_force_;
  std::optional<int64_t> size_;  // elements of the batch
  uint64_t next_handle_ = 1;
};

}  // namespace stride::ops
