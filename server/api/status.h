#pragma once

#include <cstddef>
#include <string_view>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace stride::api {

// The conversion of absl::Status to the errors that clients see. Each error has exactly one
// google.rpc.ErrorInfo. A status without one is our defect: the client gets INTERNAL with a neutral
// text, and the log the rest. CANCELLED and DEADLINE_EXCEEDED, which waits return without it, keep
// their code.

// A message inside a reply (CommandResult.status). Text is cut to `max_text` bytes.
google::rpc::Status ToRpcStatus(const absl::Status& status, size_t max_text = 64 << 10);

// The end of a call: code, text and serialized google.rpc.Status (the grpc-status-details-bin
// trailer). Clients refuse trailers above 8 KiB, so texts are cut to fit.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The delay of a RetryInfo, or a negative one when there is none.
absl::Duration RetryDelayOf(const absl::Status& status);

// `text`, cut to `max_bytes` between characters, with bytes that are not UTF-8 replaced, since
// protobuf refuses these.
std::string CutText(std::string_view text, size_t max_bytes);

}  // namespace stride::api
