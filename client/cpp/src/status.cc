#include "client/cpp/src/status.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/support/status.h>

namespace stride::internal {
namespace {

void ReadDetail(const google::protobuf::Any& detail, Error& error) {
  if (google::rpc::ErrorInfo info; detail.Is<google::rpc::ErrorInfo>() && detail.UnpackTo(&info)) {
    error.reason = info.reason();
    error.metadata = {info.metadata().begin(), info.metadata().end()};
  } else if (google::rpc::BadRequest bad;
             detail.Is<google::rpc::BadRequest>() && detail.UnpackTo(&bad)) {
    for (const auto& violation : bad.field_violations()) {
      error.violations.push_back({violation.field(), violation.description()});
    }
  } else if (google::rpc::RetryInfo retry;
             detail.Is<google::rpc::RetryInfo>() && detail.UnpackTo(&retry)) {
    error.retry_delay = std::chrono::milliseconds(retry.retry_delay().seconds() * 1000 +
                                                  retry.retry_delay().nanos() / 1000000);
  }
}

}  // namespace

Error ToError(const google::rpc::Status& status) {
  Error error{.code = static_cast<Code>(status.code()), .message = status.message()};
  for (const auto& detail : status.details()) ReadDetail(detail, error);
  return error;
}

Error ToError(const grpc::Status& status) {
  google::rpc::Status rich;
  if (!status.error_details().empty() && rich.ParseFromString(status.error_details()) &&
      rich.code() != 0) {
    return ToError(rich);
  }
  return {.code = static_cast<Code>(status.error_code()), .message = status.error_message()};
}

Error LocalError(Code code, std::string message) {
  return {.code = code, .message = std::move(message)};
}

}  // namespace stride::internal
