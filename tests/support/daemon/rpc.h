// Calls of the service message by message, without the client library: any message can be sent, and
// every response is visible.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/message_lite.h"

namespace grpc {
class Channel;
}

namespace stride::testing {

struct Violation {
  std::string field, description;
};

// The result of a call. Codes are gRPC's canonical ones.
struct Outcome {
  int code = 0;
  std::string message;
  // Fields of the google.rpc.Status in the trailer.
  int num_error_infos = 0;
  std::string reason, domain;
  std::map<std::string, std::string> metadata;
  std::vector<Violation> violations;
  bool has_retry_delay = false;
  std::string resource;  // from ResourceInfo
  std::vector<std::string> replies;

  bool ok() const { return code == 0; }
  std::string ToString() const;
};

// Reads a serialized google.rpc.Status, such as one inside a CommandResult.
Outcome ReadStatus(const std::string& serialized);

// Thread-safe.
class Rpc {
 public:
  // `tenant` is sent as the header that --trust-tenant-header trusts; empty: none.
  explicit Rpc(const std::string& address, std::string tenant = "");
  ~Rpc();

  // Sends all messages, then reads all replies, for unary and streaming methods alike. `method`
  // such as `SessionService/CreateSession`. A service's full name is used unchanged.
  Outcome Call(const std::string& method, const std::vector<std::string>& messages,
               std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;
  Outcome Call(const std::string& method, const google::protobuf::MessageLite& request,
               std::chrono::milliseconds timeout = std::chrono::seconds(30)) const {
    return Call(method, {request.SerializeAsString()}, timeout);
  }
  // Throws unless the call succeeds with one reply.
  template <typename Response>
  Response Get(const std::string& method, const google::protobuf::MessageLite& request) const {
    Response response;
    response.ParseFromString(OnlyReply(Call(method, request)));
    return response;
  }

 private:
  static std::string OnlyReply(const Outcome& outcome);

  std::shared_ptr<grpc::Channel> channel_;
  const std::string tenant_;
};

}  // namespace stride::testing
