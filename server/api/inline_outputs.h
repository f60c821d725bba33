#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/base/steady_time.h"
#include "server/engine/service/operation_handle.h"
#include "server/ops/operation_view.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::api {

// Bytes of one message, framing included: the default limit of gRPC clients.
constexpr int64_t kMaxMessageBytes = int64_t{4} << 20;

// Whether the bytes of each output travel in the reply; empty: none do.
std::vector<bool> WantedInline(const ops::OperationView& operation);

// Sizes are known from acceptance on, so that results too large for their reply are refused before
// they are computed: SIZE_LIMIT.
absl::Status CheckInlineSize(const std::vector<bool>& wanted,
                             const engine::OperationHandle& handle);

using Results = google::protobuf::RepeatedPtrField<v1::Result>;
// Adds one result for each output of a successful operation, with the bytes of the wanted ones.
// False: some of these bytes need a wait; ReadMissing reads them.
bool AddResults(const std::vector<bool>& wanted, engine::OperationHandle::Outcome outcome,
                Results* results);
absl::Status ReadMissing(const std::vector<bool>& wanted, engine::OperationHandle& handle,
                         SteadyTime deadline, Results* results);

// SIZE_LIMIT: results of `size` bytes do not fit one message.
absl::Status InlineTooLarge(std::string_view field, int64_t size);

}  // namespace stride::api
