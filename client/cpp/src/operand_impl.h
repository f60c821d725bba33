// An Operand's message and the array that must outlive it.
#pragma once

#include <memory>

#include "client/cpp/src/array_state.h"
#include "stride/operand.h"
#include "stride/v1/operation.pb.h"

namespace stride {

struct Operand::Impl {
  v1::Operand message;
  std::shared_ptr<internal::ArrayState> array;  // may be null
};

}  // namespace stride
