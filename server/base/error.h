#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "stride/v1/error.pb.h"

namespace stride {

// Errors that users see. Each is an absl::Status whose payloads are google.rpc details (ErrorInfo
// always, at most one of each other kind), keyed "type.googleapis.com/<message>"; api/ copies them
// into the gRPC trailer. A plain absl::Status without payloads is an internal error to a client.
//
// `text` starts with fixed words, ends with values and says how to correct the call. It never holds
// a path, a pointer or an internal name.

using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// INVALID_ARGUMENT about one field of the request, by its path from the message that the callee was
// given, such as `inputs[2].shape`.
absl::Status InvalidField(v1::ErrorReason reason, std::string_view field, std::string_view text,
                          ErrorMetadata metadata = {});

// NOT_FOUND; the same words whether the thing is absent or another tenant's. `type` such as
// "array".
absl::Status NotFound(v1::ErrorReason reason, std::string_view type, std::string_view name);

// RESOURCE_EXHAUSTED or UNAVAILABLE with a time after which to try again.
absl::Status TryLater(absl::StatusCode code, v1::ErrorReason reason, std::string_view text,
                      absl::Duration retry_delay, ErrorMetadata metadata = {});

// RESOURCE_EXHAUSTED with google.rpc.QuotaFailure about `tenants/{tenant}`: a request for `asked`
// more would exceed the tenant's quota. `quota` is its name in the tenants file.
struct QuotaUse {
  std::string_view quota;
  int64_t limit = 0;
  int64_t used = 0;
  int64_t asked = 0;
};
absl::Status QuotaExceeded(v1::ErrorReason reason, std::string_view tenant, std::string_view text,
                           const QuotaUse& use, absl::Duration retry_delay);

// Any other code with its reason.
absl::Status MakeError(absl::StatusCode code, v1::ErrorReason reason, std::string_view text,
                       ErrorMetadata metadata = {});

// UNIMPLEMENTED that names the missing feature.
absl::Status NotImplemented(std::string_view feature, std::string_view text);

// Adds the field at fault to a status that names none.
absl::Status AtField(absl::Status status, std::string_view field, std::string_view text);

// Puts `prefix` before every field path of the status, so that a callee need not know where its
// message sat: "operation." + "matmul.left".
absl::Status PrefixField(absl::Status status, std::string_view prefix);

// The reason that a status carries; UNSPECIFIED when it carries none.
v1::ErrorReason ReasonOf(const absl::Status& status);

// The same as its ErrorInfo spells it, such as `QUOTA`; empty when it carries none.
std::string ReasonNameOf(const absl::Status& status);

// The value that the status's ErrorInfo has under `key`; empty when it has none.
std::string MetadataOf(const absl::Status& status, std::string_view key);

// Copies message and details under another code or with a longer text, keeping payloads.
absl::Status WithText(const absl::Status& status, std::string_view text);

}  // namespace stride
