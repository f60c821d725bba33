#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/base/steady_time.h"
#include "server/scheduler/service/operation_handle.h"
#include "stride/v1/compute_service.pb.h"
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

// Of each output, whether its bytes travel in the reply; empty: none do.
std::vector<bool> WantedInline(const v1::Operation& operation);

// Sizes are known from acceptance on, so that results too large for their reply are refused before
// they are computed: SIZE_LIMIT.
absl::Status CheckInlineSize(const std::vector<bool>& wanted,
                             const scheduler::OperationHandle& handle);

using Results = google::protobuf::RepeatedPtrField<v1::Result>;
// Adds one result for each output of a successful operation, with the bytes of the wanted ones.
// False: some of these bytes need a wait; ReadMissing reads them.
bool AddResults(const std::vector<bool>& wanted, scheduler::OperationHandle::Outcome outcome,
                Results* results);
absl::Status ReadMissing(const std::vector<bool>& wanted, scheduler::OperationHandle& handle,
                         SteadyTime deadline, Results* results);

// SIZE_LIMIT: results of `size` bytes do not fit one message.
absl::Status InlineTooLarge(std::string_view field, int64_t size);

}  // namespace stride::api
