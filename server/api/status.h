#pragma once

#include <cstddef>
#include <string_view>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace stride::api {

// The border between absl::Status and what a client sees. Every error leaves with exactly one
// google.rpc.ErrorInfo: a status that has none is a mistake of ours, so that the client reads
// INTERNAL with neutral words and the log has the rest; CANCELLED and DEADLINE_EXCEEDED, which
// waits return bare, keep their code.

// As a message inside a reply (CommandResult.status). Text is cut to `max_text` bytes.
google::rpc::Status ToRpcStatus(const absl::Status& status, size_t max_text = 64 << 10);

// As the end of a call: code, text and serialized google.rpc.Status (the grpc-status-details-bin
// trailer). Clients refuse trailers above 8 KiB, so that texts are cut to fit.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The delay of a RetryInfo, or a negative one when there is none.
absl::Duration RetryDelayOf(const absl::Status& status);

// `text` without its end beyond `max_bytes`, cut between characters, and with bytes that are not
// UTF-8 replaced: protobuf refuses those.
std::string CutText(std::string_view text, size_t max_bytes);

}  // namespace stride::api
