#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "stride/v1/operation.pb.h"

namespace stride::api {

// The outputs of an operation in the order of its results; a kernel launch has them among its
// arguments.
struct OutputPlace {
  const v1::Output* output;
  int index;  // among the operation's outputs, or its kernel's arguments
  bool of_kernel = false;
  int member = -1;  // of an aggregate argument; -1: it is the argument itself

  // Its path within the operation, such as `outputs[0]`.
  std::string field() const;
};
using OutputPlaces = absl::InlinedVector<OutputPlace, 2>;
OutputPlaces OutputsOf(const v1::Operation& operation);

// Bytes of one message, framing included: the default limit of gRPC clients.
constexpr int64_t kMaxMessageBytes = int64_t{4} << 20;

// SIZE_LIMIT: results of `size` bytes do not fit one message.
absl::Status InlineTooLarge(std::string_view field, int64_t size);

}  // namespace stride::api
