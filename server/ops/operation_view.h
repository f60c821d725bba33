#pragma once

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "stride/v1/operation.pb.h"

namespace stride::ops {

struct OperationKind;
class KindTable;

// Rows fill these lists, which point into the operation.
struct OperandList : absl::InlinedVector<const v1::Operand*, 4> {
  void Add(const v1::Operand& operand) { push_back(&operand); }
  void AddEach(const google::protobuf::RepeatedPtrField<v1::Operand>& operands) {
    for (const v1::Operand& operand : operands) push_back(&operand);
  }
};
using OutputList = absl::InlinedVector<const v1::Output*, 2>;

// Every operand in the order in which the planner takes them: the inputs of an expression by name,
// the arrays of a kernel's arguments (members of structs among them) and then of its globals.
OperandList OperandsOf(const v1::Operation& operation);
// Every output in plan order. A kernel's are among its arguments.
OutputList OutputsOf(const v1::Operation& operation);

// An operation as it was accepted, read once. It borrows the operation, which must not change while
// the view is used. Any thread.
class OperationView {
 public:
  // Implicit: an operation is passed as it is. A test may give other rows.
  OperationView(const v1::Operation& operation);
  OperationView(const v1::Operation& operation, const KindTable& kinds);

  const v1::Operation& operator*() const { return operation_; }
  const v1::Operation* operator->() const { return &operation_; }
  const OperationKind& kind() const { return kind_; }
  const OperandList& operands() const& { return operands_; }
  const OutputList& outputs() const& { return outputs_; }
  // A temporary's lists would end before they are read.
  void operands() && = delete;
  void outputs() && = delete;

  // The name of its task, for users.
  std::string label() const;
  // Paths within the Operation, such as `kernel_launch.arguments[1].aggregate.members[0].array`,
  // for errors: found by reflection.
  std::string OperandPath(size_t operand) const;
  std::string OutputPath(size_t output) const;

 private:
  const v1::Operation& operation_;
  const OperationKind& kind_;
  OperandList operands_;
  OutputList outputs_;
};

// Refuses lists longer than any operation needs, before its entries are looked at: a message of
// 4 MiB holds a million. SIZE_LIMIT with the field's path within the Operation.
absl::Status CheckLists(const OperationView& operation);

}  // namespace stride::ops
