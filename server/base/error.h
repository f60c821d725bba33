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

// INVALID_ARGUMENT about one field of the request. `field`: path from the message that the callee
// got, such as `inputs[2].shape`.
absl::Status InvalidField(v1::ErrorReason reason, std::string_view field, std::string_view text,
                          ErrorMetadata metadata = {});

// NOT_FOUND, with the same text whether the object is absent or another tenant's. `type` such as
// "array".
absl::Status NotFound(v1::ErrorReason reason, std::string_view type, std::string_view name);

// RESOURCE_EXHAUSTED or UNAVAILABLE with a delay before a retry.
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

// An error with any other code and its reason.
absl::Status MakeError(absl::StatusCode code, v1::ErrorReason reason, std::string_view text,
                       ErrorMetadata metadata = {});

// UNIMPLEMENTED that names the missing feature.
absl::Status NotImplemented(std::string_view feature, std::string_view text);

// Adds the invalid field to a status without one.
absl::Status AtField(absl::Status status, std::string_view field, std::string_view text);

// Prepends `prefix` to every field path of the status, so that a callee need not know the location
// of its message: "operation." + "matmul.left".
absl::Status PrefixField(absl::Status status, std::string_view prefix);

// The status's reason; UNSPECIFIED when there is none.
v1::ErrorReason ReasonOf(const absl::Status& status);

// The reason's name in its ErrorInfo, such as `QUOTA`; empty when there is none.
std::string ReasonNameOf(const absl::Status& status);

// The ErrorInfo's value for `key`; empty when there is none.
std::string MetadataOf(const absl::Status& status, std::string_view key);

// Copies message and details with another code or a longer text; keeps payloads.
absl::Status WithText(const absl::Status& status, std::string_view text);

}  // namespace stride
