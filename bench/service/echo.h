// The floor under every call: a unary gRPC method that does nothing, served by the synchronous API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace stride::bench {

// Serves on `unix:{folder}/echo` and a free TCP port of 127.0.0.1, says so on standard output, and
// returns when standard input ends.
int ServeEcho(const std::string& folder);

class EchoClient {
 public:
  explicit EchoClient(const std::string& target);
  ~EchoClient();

  // Sends `request_bytes` and receives `reply_bytes`; false when that failed.
  bool Call(uint32_t request_bytes, uint32_t reply_bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride::bench
