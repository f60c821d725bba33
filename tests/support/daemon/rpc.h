// Calls of the service message by message, without the client library: what it would never send can
// be sent, and everything that comes back can be seen.
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

// What a call ended with. Codes are gRPC's canonical ones.
struct Outcome {
  int code = 0;
  std::string message;
  // Of the google.rpc.Status in the trailer.
  int num_error_infos = 0;
  std::string reason, domain;
  std::map<std::string, std::string> metadata;
  std::vector<Violation> violations;
  bool has_retry_delay = false;
  std::string resource;  // of a ResourceInfo
  std::vector<std::string> replies;

  bool ok() const { return code == 0; }
  std::string ToString() const;
};

// Reads a serialized google.rpc.Status, such as one inside a CommandResult.
Outcome ReadStatus(const std::string& serialized);

// Thread-safe.
class Rpc {
 public:
  // `tenant` goes as the header that --trust-tenant-header believes; empty: none.
  explicit Rpc(const std::string& address, std::string tenant = "");
  ~Rpc();

  // All messages are sent, then all replies read: of unary and streaming methods alike. `method`
  // such as `SessionService/CreateSession`. A service's full name is taken as it is.
  Outcome Call(const std::string& method, const std::vector<std::string>& messages,
               std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;
  Outcome Call(const std::string& method, const google::protobuf::MessageLite& request,
               std::chrono::milliseconds timeout = std::chrono::seconds(30)) const {
    return Call(method, {request.SerializeAsString()}, timeout);
  }
  // Throws unless the call is good and has one reply.
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
