#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/op_table.h"
#include "server/ops/promotion.h"
#include "server/ops/scalar.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// A value of the program under construction.
struct Value {
  uint32_t id = 0;
  DType dtype = DType::kBool;
};

// An argument of an operation: a value, or an untyped weak scalar.
using Argument = std::variant<Value, WeakScalar>;

// Builds a wire::ScalarProgram instruction by instruction. Equal instructions are added once, so
// common subexpressions are computed once.
class ProgramBuilder {
 public:
  // Returns the element of the array in `slot`, its index among the operation's inputs. Slots get
  // operand numbers in the order of first use.
  Value Input(uint32_t slot, DType dtype);
  // Returns the element's linear index in C order, int64.
  Value Index();
  // Adds a launch constant. Equal constants of one type share a slot.
  Value Constant(const wire::ScalarValue& scalar);
  // Adds a launch constant that shares no slot, so that the program does not depend on the values.
  Value Parameter(const wire::ScalarValue& scalar);
  // Adds an operation whose arguments already have their compute types.
  Value Op(std::string_view name, absl::Span<const Value> arguments, DType result);
  Value Cast(Value value, DType dtype);
  // Adds a call of a client's function; arguments and result have compute types.
  Value Call(const wire::DeviceFunction& function, absl::Span<const Value> arguments, DType result);
  // Like Call, for a function that writes several results through pointers.
  std::vector<Value> CallSeveral(const wire::DeviceFunction& function,
                                 absl::Span<const Value> arguments,
                                 absl::Span<const DType> results);
  // Makes later constants part of the code, for programs without a launch of their own.
  void MakeConstantsLiteral() { literal_constants_ = true; }

  wire::ScalarProgram Finish(absl::Span<const Value> results) const;

  const std::vector<uint32_t>& slots() const { return slots_; }  // slot of operand i
  const std::vector<DType>& input_dtypes() const { return input_dtypes_; }
  const std::vector<wire::ScalarValue>& scalars() const { return scalars_; }
  int num_operations() const { return num_operations_; }
  int num_instructions() const { return program_.instructions_size(); }
  int num_functions() const { return program_.functions_size(); }
  // Returns whether the program depends on the order of its elements, which forbids reordering of
  // loop axes.
  bool uses_index() const { return uses_index_; }

 private:
  Value Add(wire::Instruction instruction, DType dtype);
  wire::Instruction CallOf(const wire::DeviceFunction& function, absl::Span<const Value> arguments);

  wire::ScalarProgram program_;
  std::map<std::string, uint32_t> known_;  // serialized instruction -> value
  std::map<std::string, uint32_t> scalar_index_;
  std::vector<uint32_t> slots_;
  std::vector<DType> input_dtypes_;
  std::vector<wire::ScalarValue> scalars_;
  int num_operations_ = 0;
  bool uses_index_ = false;
  bool literal_constants_ = false;
};

// Applies a row of the table with NumPy's typing: promotion, weak scalars, casts, 16-bit floats
// computed in float32. Errors at `field`.
absl::StatusOr<Value> Apply(ProgramBuilder& builder, const OpRow& row,
                            absl::Span<const Argument> arguments, std::optional<DType> data_type,
                            std::string_view field, Casting casting = Casting::kSameKind);

// Converts a weak scalar to NumPy's default type: int64 (or uint64), float64 or complex128.
absl::StatusOr<Value> ToValue(ProgramBuilder& builder, const Argument& argument,
                              std::string_view field);

}  // namespace stride::ops
