// The only conversion of wire statuses to Errors.
#pragma once

#include <string>

#include "stride/error.h"

namespace google::rpc {
class Status;
}
namespace grpc {
class Status;
}

namespace stride::internal {

// Reads ErrorInfo, BadRequest and RetryInfo from the details; ignores unknown details. The status
// must not be OK.
Error ToError(const google::rpc::Status& status);
Error ToError(const grpc::Status& status);

// An error detected on this side of the wire.
Error LocalError(Code code, std::string message);

}  // namespace stride::internal
