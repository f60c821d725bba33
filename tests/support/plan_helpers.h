#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/plan.h"

// Short forms of operations for tests.
namespace stride::ops::testing {

inline Input Array(DType dtype, std::vector<int64_t> shape) {
  return Contiguous(dtype, std::move(shape));
}

// A ufunc over arrays.
inline v1::Operation UfuncOf(const std::string& function, int num_inputs) {
  v1::Operation operation;
  operation.mutable_ufunc()->set_function(function);
  for (int i = 0; i < num_inputs; ++i) operation.mutable_ufunc()->add_inputs()->set_handle(1 + i);
  operation.add_outputs()->set_handle(100);
  return operation;
}

// The field named by an error; empty if none.
inline std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest request;
  auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  if (!payload || !request.ParseFromString(std::string(*payload))) return "";
  return request.field_violations_size() == 0 ? "" : request.field_violations(0).field();
}

// Plans and expects success. All targets are `existing`.
inline Plan Good(const v1::Operation& operation, const std::vector<Input>& inputs,
                 const Input& existing = {}) {
  const std::vector<Input> targets(operation.outputs_size(), existing);
  auto plan = PlanOperation(operation, inputs, targets);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

inline void ExpectRefused(const v1::Operation& operation, const std::vector<Input>& inputs,
                          v1::ErrorReason reason, const std::string& field,
                          const Input& existing = {}) {
  const std::vector<Input> targets(operation.outputs_size(), existing);
  const absl::Status status = PlanOperation(operation, inputs, targets).status();
  EXPECT_EQ(ReasonOf(status), reason) << status;
  EXPECT_EQ(FieldOf(status), field) << status;
}

inline v1::Operation ExpressionOf(const std::string& text, const std::vector<std::string>& names) {
  v1::Operation operation;
  operation.mutable_expression()->set_text(text);
  for (const std::string& name : names)
    (*operation.mutable_expression()->mutable_inputs())[name].set_handle(1);
  operation.add_outputs()->set_handle(100);
  return operation;
}

inline int CountOps(const wire::ScalarProgram& program, const std::string& op = "") {
  int count = 0;
  for (const auto& instruction : program.instructions()) {
    count +=
        instruction.kind() == wire::Instruction::KIND_OP && (op.empty() || instruction.op() == op);
  }
  return count;
}

}  // namespace stride::ops::testing
