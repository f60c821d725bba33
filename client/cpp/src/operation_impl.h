// An Operation's message and the arrays that must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "client/cpp/src/array_state.h"
#include "stride/operation.h"
#include "stride/v1/operation.pb.h"

namespace stride {

struct Operation::Impl {
  v1::Operation message;
  std::vector<std::shared_ptr<internal::ArrayState>> arrays;
  int num_outputs = 1;
  // An error of the operation that the wire format cannot express.
  std::optional<Error> error;
};

struct ViewSteps::Impl {
  v1::View view;
};

namespace internal {

// The operand's message; its array is kept with the operation.
v1::Operand Use(const Operand& operand, Operation::Impl& impl);

inline v1::DataType ToProto(DataType type) { return static_cast<v1::DataType>(type); }

// Outputs of a message in the order of results: a launch's are among its arguments.
std::vector<v1::Output*> MutableOutputs(v1::Operation& message, int num_outputs);

}  // namespace internal
}  // namespace stride
